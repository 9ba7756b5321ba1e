/** RSA key pairs for tests. Making one takes 100 ms, which is more than many a test. */
import { generateKeyPairSync, type KeyPairKeyObjectResult } from 'node:crypto';
import { afterFile } from './after-file.ts';

const made: KeyPairKeyObjectResult[] = [];
let given = 0;

/** One of 2048 bits that this test file was not given before. The next file is given the same ones: its brokers know none of them. */
export function newRsaPair(): KeyPairKeyObjectResult {
  if (given === 0)
    afterFile(() => {
      given = 0;
    });
  const pair = made[given] ?? generateKeyPairSync('rsa', { modulusLength: 2048 });
  made[given++] = pair;
  return pair;
}
