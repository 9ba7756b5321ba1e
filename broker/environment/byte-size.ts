/** Parses sizes as operators write them. */
import { z } from 'zod';

const UNITS: Readonly<Record<string, number>> = { KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 };

/** Parses bytes, or `64MiB` and the like, to a number of bytes. */
export const byteSize = z
  .string()
  .regex(/^[1-9]\d{0,11}(?:KiB|MiB|GiB)?$/, 'must be bytes, or a size such as 64MiB or 1GiB')
  .transform((size) => {
    const unit = /[A-Z].*$/.exec(size)?.[0] ?? '';
    return Number(size.slice(0, size.length - unit.length)) * (UNITS[unit] ?? 1);
  });
