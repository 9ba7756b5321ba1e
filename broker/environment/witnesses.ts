/** Parses the witnesses of the receipt logs. */
import { z } from 'zod';
import { isIssuer, listed } from './forms.ts';

/** `vkey`: a verifier key (C2SP signed-note); `url`: without `/add-checkpoint`. */
export type WitnessAddress = { vkey: string; url: string };

const WITNESS = /^[^\s+]+\+[0-9a-f]{8}\+[A-Za-z0-9+/=]+ \S+$/;

function addressIn(text: string): WitnessAddress {
  const [vkey = '', url = ''] = text.split(' ');
  return { vkey, url: url.replace(/\/$/, '') };
}

export const Witnesses = z
  .string()
  .default('')
  .transform(listed)
  .pipe(
    z.array(
      z
        .string()
        .regex(WITNESS, 'must be a verifier key, a space, and the address of its witness')
        .transform(addressIn)
        .refine(({ url }) => isIssuer(url), 'has a witness whose address is not https; http:// only on loopback'),
    ),
  )
  .refine(
    (witnesses) =>
      (['vkey', 'url'] as const).every((part) => new Set(witnesses.map((one) => one[part])).size === witnesses.length),
    'lists a key or an address of a witness twice',
  )
  .describe('comma-separated witnesses that co-sign checkpoints of receipt logs: verifier key, a space, address');
