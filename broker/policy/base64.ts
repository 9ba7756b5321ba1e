/** Whether a text is canonical, padded base64 and nothing else (RFC 4648 section 4), so that every decoder reads the same bytes. */
export const isBase64 = (text: string): boolean => Buffer.from(text, 'base64').toString('base64') === text;
