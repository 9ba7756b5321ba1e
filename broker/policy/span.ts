/** Time spans as they are written: `45m`, `12h`, `30d`. */
const UNITS = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
/** Also used by editors, through the JSON schema. */
export const SPAN_PATTERN = /^([1-9][0-9]{0,5})([mhd])$/;

/** Returns milliseconds; undefined when the text is not a span. */
export function spanMs(text: string): number | undefined {
  const [, count, unit] = SPAN_PATTERN.exec(text) ?? [];
  return count === undefined ? undefined : Number(count) * UNITS[unit as keyof typeof UNITS];
}
