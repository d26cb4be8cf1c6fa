import { useEffect, useRef, useState } from "react";

/** Return the class that makes an element flash its tint for 0.6 s after a value has changed; not at first. */
export function useFlash(value: string): string {
  const before = useRef(value);
  const [flashing, setFlashing] = useState(false);
  useEffect(() => {
    if (before.current === value) return undefined;
    before.current = value;
    setFlashing(true);
    const timer = setTimeout(() => setFlashing(false), 600);
    return () => clearTimeout(timer);
  }, [value]);
  return flashing ? "flash" : "";
}
