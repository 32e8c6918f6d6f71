export default function KeysSheet() { return null; }
