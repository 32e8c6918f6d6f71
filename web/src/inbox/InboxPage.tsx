export function InboxPage(_: { item: string | null }) { return null; }
