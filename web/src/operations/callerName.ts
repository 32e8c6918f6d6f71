/** CallerName: who sent a request, in words. The server writes the name of the token and its id. */
export function callerName(who: string): string {
  if (who === "admin") return "Owner's token";
  const name = who.replace(/ \(pass_[0-9a-z]+\)$/, "");
  return name === "browser" ? "Browser session" : name;
}
