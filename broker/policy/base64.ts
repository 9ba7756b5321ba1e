/** Whether a text is base64 with its padding and nothing else (RFC 4648 section 4), so that it is the bytes that everybody reads. */
export const isBase64 = (text: string): boolean => Buffer.from(text, 'base64').toString('base64') === text;
