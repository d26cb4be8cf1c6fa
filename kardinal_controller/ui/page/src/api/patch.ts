// JSON merge patches (RFC 7396): what a patch names is replaced, objects are merged, null removes a field.

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Return the target with a merge patch applied.
 *
 * Nothing is changed in place: what the patch does not touch is the same object as before, so that a row of a list
 * is drawn again only when it changed.
 */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const merged = new Map(isObject(target) ? Object.entries(target) : []);
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) merged.delete(key);
    else merged.set(key, mergePatch(merged.get(key), value));
  }
  // A key such as `__proto__` becomes a field of its own, never the prototype.
  return Object.fromEntries(merged);
}
