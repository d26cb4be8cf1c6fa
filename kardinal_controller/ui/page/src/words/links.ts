// Addresses that come from objects: only http and https are followed.

/** Return the address if it is an absolute http or https URL without credentials; else undefined. */
export function safeUrl(url: string | undefined): string | undefined {
  if (!url) return undefined;
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    return undefined;
  }
  if (parsed.protocol !== "https:" && parsed.protocol !== "http:") return undefined;
  return parsed.username || parsed.password ? undefined : parsed.href;
}
