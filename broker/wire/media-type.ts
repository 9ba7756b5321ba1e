/** The type in a Content-Type without its parameters, in lower case (RFC 9110 section 8.3.1); empty without one. What is no media type is not told apart. */
export const essenceOf = (contentType = ''): string => (contentType.split(';', 1)[0] ?? '').trim().toLowerCase();
