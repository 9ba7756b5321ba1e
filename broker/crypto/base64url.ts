/**
 * Decodes base64url as in RFC 7515 section 2: no padding, no other characters, and canonical, so that no two texts
 * decode to the same bytes (`Buffer.from` alone silently accepts padding, `+`, white space and spare bits).
 * @returns undefined for anything else, the empty text included.
 */
export function decodeBase64url(text: string): Buffer | undefined {
  if (text === '') return undefined;
  const bytes = Buffer.from(text, 'base64url');
  return bytes.toString('base64url') === text ? bytes : undefined;
}

/** The same for standard base64 with padding (RFC 4648 section 4). */
export function decodeBase64(text: string): Buffer | undefined {
  if (text === '') return undefined;
  const bytes = Buffer.from(text, 'base64');
  return bytes.toString('base64') === text ? bytes : undefined;
}
