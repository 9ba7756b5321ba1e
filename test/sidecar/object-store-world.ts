/** A broker, and an object store whose key the broker has. */
import { expectStatus } from '../world/agent.ts';
import { startObjectStore } from '../world/servers/object-store.ts';
import { CANARY, givenWorld, shared } from '../world/world.ts';

const KEY = { access_key_id: 'AKIACANARY0123456789', secret_access_key: CANARY };

/** Starts both once for a test file. `organisation` has the connection `s3`. */
export function givenObjectStore() {
  const store = shared(() => startObjectStore(KEY));
  const world = givenWorld('sqlite', () => ({ AGENT_BROKER_ALLOW_PRIVATE: new URL(store.url).host }));
  const organisation = shared(async () => {
    const made = await world.organisation();
    const text = JSON.stringify({
      platforms: { s3: { use: 's3', base_url: store.url } },
      connections: { s3: { platform: 's3', secret: { env: 'KEY' } } },
    });
    const values = { 'env:KEY': JSON.stringify(KEY) };
    await expectStatus(200, made.ask('POST', '/owner/governance/apply', { text, values }));
    return made;
  });
  return { store, organisation };
}
