import { expect, test } from 'vitest';
import { clientBasic } from '../../broker/egress/client-basic.ts';

const pairOf = (header: string): string => Buffer.from(header.replace(/^Basic /, ''), 'base64').toString();

test.each([
  // As most servers give them, and servers that do not decode find them.
  ['8f1c-2d_e.3', 'secret_a-b.c*', '8f1c-2d_e.3:secret_a-b.c*'],
  // What would end the id, or is no ASCII, is encoded.
  ['urn:client', 'a b+c%/=ü', 'urn%3Aclient:a+b%2Bc%25%2F%3D%C3%BC'],
])('%s and %s', (id, secret, pair) => {
  expect(pairOf(clientBasic(id, secret))).toBe(pair);
});
