/** A run whose agent gets another key meanwhile. */
import { renameSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parsePublicKey } from '../../broker/crypto/public-key.ts';
import { makeKeyPair } from '../world/agent.ts';
import { ALLOW_ALL, givenWorld } from '../world/world.ts';
import { js, profileOf, startRun } from './run-world.ts';

const world = givenWorld();

/** Asks until it was refused and then answered again, or was refused four times. */
const ASKING = js(`const { OPENAI_BASE_URL: url, OPENAI_API_KEY: key } = process.env;
  for (let refused = 0; refused < 4; await new Promise((done) => setTimeout(done, 100))) {
    const { status } = await fetch(url + '/items', { headers: { 'x-api-key': key } });
    console.log(status);
    if (status === 401) refused++;
    else if (refused > 0) process.exit(0);
  }
  process.exit(1);`);

test('the key of the profile is read again once the broker refuses the token, so that a run goes on after a rotation', async () => {
  const organisation = await world.organisation();
  await organisation.platform({ id: 'openai', manifest: { scopes: { 'demo:all': ['GET /items'] } } });
  const agent = await organisation.agent({ rules: ALLOW_ALL, grants: { openai: { scopeList: ['demo:all'] } } });
  const profile = profileOf(agent);
  const started = startRun(profile, ASKING);
  await started.written(/^200$/m);
  const keys = makeKeyPair();
  const parsed = parsePublicKey(keys.publicPem);
  if (!parsed.ok) throw new Error(parsed.error);
  await world.db
    .updateTable('agents')
    .set({ public_key_pem: parsed.pem, key_fingerprint: parsed.fingerprint })
    .where('id', '=', agent.id)
    .execute();
  agent.keys = keys;
  renameSync(profileOf(agent), profile);
  const ended = await started.ended;
  expect(ended.stdout).toMatch(/200\n(?:401\n){1,2}200\n$/);
  expect(ended.code).toBe(0);
});
