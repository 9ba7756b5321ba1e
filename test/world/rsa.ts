/** RSA key pairs for tests. Making one takes 100 ms, longer than many tests. */
import { generateKeyPairSync, type KeyPairKeyObjectResult } from 'node:crypto';
import { afterFile } from './after-file.ts';

const made: KeyPairKeyObjectResult[] = [];
let given = 0;

/** Returns a pair of 2048 bits that this test file has not used yet. The next file gets the same pairs again, with new brokers. */
export function newRsaPair(): KeyPairKeyObjectResult {
  if (given === 0)
    afterFile(() => {
      given = 0;
    });
  const pair = made[given] ?? generateKeyPairSync('rsa', { modulusLength: 2048 });
  made[given++] = pair;
  return pair;
}
