import { ALL_PLATFORMS } from '../policy/facts.ts';

const LONGEST = 64;

/** What a question names, as the facts can be asked about it: a platform id, or the empty string for what cannot be one. */
export function askedPlatform(named: unknown): string {
  const usable =
    typeof named === 'string' && named.length <= LONGEST && named !== ALL_PLATFORMS && /^[\x21-\x7e]+$/.test(named);
  return usable ? named : '';
}
