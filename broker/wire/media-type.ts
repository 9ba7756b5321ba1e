/**
 * The media type of a Content-Type without parameters, in lower case (RFC 9110 section 8.3.1); empty without one. Malformed types are not
 * detected.
 */
export const essenceOf = (contentType = ''): string => (contentType.split(';', 1)[0] ?? '').trim().toLowerCase();

/**
 * The charsets in a Content-Type, in lower case, as lenient readers accept them: with blanks around `=`. Of several, readers take the
 * first.
 */
export const charsetsOf = (contentType = ''): string[] =>
  [...contentType.matchAll(/;\s*charset\s*=\s*"?([^\s";]+)/gi)].map(([, charset = '']) => charset.toLowerCase());

/** Whether a charset is a client's name for UTF-8, or for its subset US-ASCII. */
export const isUtf8Name = (charset: string): boolean => /^(?:utf-?8|us-ascii)$/i.test(charset);
