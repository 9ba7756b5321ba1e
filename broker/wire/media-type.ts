/** The type in a Content-Type without its parameters, in lower case (RFC 9110 section 8.3.1); empty without one. What is no media type is not told apart. */
export const essenceOf = (contentType = ''): string => (contentType.split(';', 1)[0] ?? '').trim().toLowerCase();

/** The charsets that a Content-Type says, in lower case, as lenient readers take them: with blanks around the `=`. Of several, readers take the first. */
export const charsetsOf = (contentType = ''): string[] =>
  [...contentType.matchAll(/;\s*charset\s*=\s*"?([^\s";]+)/gi)].map(([, charset = '']) => charset.toLowerCase());

/** Whether a charset is what clients call UTF-8, or US-ASCII, which is a part of it. */
export const isUtf8Name = (charset: string): boolean => /^(?:utf-?8|us-ascii)$/i.test(charset);
