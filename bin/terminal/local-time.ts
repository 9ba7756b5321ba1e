/** Formats a moment in local time, with the zone that makes it unambiguous: `2026-11-21 18:04:05+01:00`. */
export function localTime(moment: string): string {
  const date = new Date(moment);
  const two = (value: number): string => String(Math.floor(value)).padStart(2, '0');
  const ahead = -date.getTimezoneOffset();
  const zone = `${ahead < 0 ? '-' : '+'}${two(Math.abs(ahead) / 60)}:${two(Math.abs(ahead) % 60)}`;
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}${zone}`;
}
