import { expect, test } from 'vitest';
import { clientBasic } from '../../broker/egress/client-basic.ts';

const pairOf = (header: string): string => Buffer.from(header.replace(/^Basic /, ''), 'base64').toString();

test.each([
  // Unencoded, as most servers issue them, and as servers expect that do not decode.
  ['8f1c-2d_e.3', 'secret_a-b.c*', '8f1c-2d_e.3:secret_a-b.c*'],
  // Characters that would end the id, and non-ASCII ones, are encoded.
  ['urn:client', 'a b+c%/=ü', 'urn%3Aclient:a+b%2Bc%25%2F%3D%C3%BC'],
])('%s and %s', (id, secret, pair) => {
  expect(pairOf(clientBasic(id, secret))).toBe(pair);
});
