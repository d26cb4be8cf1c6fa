// Times in words: how long ago, in how long, and the absolute time with its zone.

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

// A formatter costs a hundred times more to make than to use.
const TIME: Intl.DateTimeFormatOptions = { hour: "2-digit", minute: "2-digit" };
const TODAY = new Intl.DateTimeFormat("en-GB", TIME);
const NEAR = new Intl.DateTimeFormat("en-GB", { ...TIME, weekday: "short", timeZoneName: "short" });
const FAR = new Intl.DateTimeFormat("en-GB", { ...TIME, day: "numeric", month: "short", timeZoneName: "short" });
const ABSOLUTE = new Intl.DateTimeFormat("en-GB", {
  ...TIME,
  weekday: "short",
  day: "numeric",
  month: "short",
  year: "numeric",
  second: "2-digit",
  timeZoneName: "short",
});

/** Return a duration with its largest unit: `20 s`, `41 min`, `3 h`, `8 d`. */
export function roughly(milliseconds: number): string {
  const length = Math.max(0, milliseconds);
  if (length < MINUTE) return `${Math.floor(length / SECOND)} s`;
  if (length < HOUR) return `${Math.floor(length / MINUTE)} min`;
  if (length < 2 * DAY) return `${Math.floor(length / HOUR)} h`;
  return `${Math.floor(length / DAY)} d`;
}

/** Return a duration with its two largest units: `2 d 13 h`, `4 min 12 s`. */
export function exactly(milliseconds: number): string {
  const length = Math.max(0, milliseconds);
  const units: [number, string][] = [
    [DAY, "d"],
    [HOUR, "h"],
    [MINUTE, "min"],
    [SECOND, "s"],
  ];
  const first = units.findIndex(([unit]) => length >= unit);
  if (first < 0) return "0 s";
  const parts: string[] = [];
  let rest = length;
  for (const [unit, name] of units.slice(first, first + 2)) {
    const count = Math.floor(rest / unit);
    rest -= count * unit;
    if (count) parts.push(`${count} ${name}`);
  }
  return parts.join(" ");
}

/** Return the moment at which the day of another one began where the viewer is. */
export function midnight(moment: number): number {
  return new Date(moment).setHours(0, 0, 0, 0);
}

/** Return the clock time of a moment, with the weekday or date if it is not today: `14:05`, `Mon 09:00 CET`. */
export function clock(at: number, now: number): string {
  const today = new Date(now).toDateString() === new Date(at).toDateString();
  if (today) return TODAY.format(at);
  const format = Math.abs(at - now) < 6 * DAY ? NEAR : FAR;
  return format.format(at).replace(",", "");
}

/** Return the absolute time with its zone: `Tue, 24 Nov 2026, 14:05:12 CET`. */
export function absolute(at: number): string {
  return ABSOLUTE.format(at);
}
