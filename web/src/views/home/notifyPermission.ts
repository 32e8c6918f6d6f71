/** Ask the browser for notifications; return why they are not possible, or an empty text. */
export async function askForNotifications(): Promise<string> {
  if (!("Notification" in window)) return "Notifications are not available: the browser offers them only on https, or on the machine that runs the server.";
  if ((await Notification.requestPermission()) !== "granted") return "The browser blocks notifications. Allow them for this site in the browser's settings.";
  return "";
}
