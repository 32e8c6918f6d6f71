export function Shortcuts() { return null; }
