/**
 * RSA key pairs for tests. Making one takes 50 ms of a processor, longer than many tests; so all processes of a run share theirs: whoever needs the
 * n-th first makes it, in the folder of the programs.
 */
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyPairKeyObjectResult } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROGRAMS } from './checkout.ts';
import { afterFile } from './runner/after-file.ts';

const FOLDER = join(PROGRAMS, 'rsa-pairs');
const made: KeyPairKeyObjectResult[] = [];
let given = 0;

/** Returns a pair of 2048 bits that this test file has not used yet. The next file gets the same pairs again, with new brokers. */
export function newRsaPair(): KeyPairKeyObjectResult {
  if (given === 0)
    afterFile(() => {
      given = 0;
    });
  const pair = made[given] ?? sharedPair(given);
  made[given++] = pair;
  return pair;
}

function sharedPair(number: number): KeyPairKeyObjectResult {
  const path = join(FOLDER, `${number}.pem`);
  if (existsSync(path)) {
    const privateKey = createPrivateKey(readFileSync(path));
    return { privateKey, publicKey: createPublicKey(privateKey) };
  }
  const pair = generateKeyPairSync('rsa', { modulusLength: 2048 });
  // Renamed when complete. Two processes that make it concurrently each use their own.
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(`${path}.${process.pid}`, pair.privateKey.export({ format: 'pem', type: 'pkcs8' }));
  renameSync(`${path}.${process.pid}`, path);
  return pair;
}
