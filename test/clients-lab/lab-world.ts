/** A broker with the platforms of the lab, and one small server that stands for all of them. */
import { beforeEach, expect } from 'vitest';
import type { BuiltinName } from '../../broker/platforms/builtin-names.ts';
import { manifestOf } from '../platforms/classified.ts';
import { awsProblem } from '../signing/aws-verifier.ts';
import { expectStatus } from '../world/agent.ts';
import type { StoreKind } from '../world/stores.ts';
import { CANARY, givenWorld, shared } from '../world/world.ts';
import { CLIENTS } from './clients.ts';
import { answerOf } from './platform-answers.ts';

const KEY = { access_key_id: 'AKIACANARY0123456789', secret_access_key: CANARY };

/**
 * Sets up the lab for the tests of this `describe`. `agent`: creates an agent with all scopes of a platform except one, and with another one whose calls are
 * held.
 */
export function givenLab(store: StoreKind = 'sqlite', environment: Record<string, string> = {}) {
  const world = givenWorld(store, environment);
  const organisation = shared(async () => {
    const made = await world.organisation();
    const ids = [...new Set(CLIENTS.map(({ platform }) => platform))];
    const entries = ids.map((id) => [id, { use: id, base_url: `${world.upstream.url}/${id}` }]);
    const text = JSON.stringify({
      platforms: Object.fromEntries(entries),
      connections: Object.fromEntries(
        ids.map((id) => [id, { platform: id, secret: { env: id === 's3' ? 'KEY' : 'SECRET' } }]),
      ),
    });
    const values = { 'env:SECRET': CANARY, 'env:KEY': JSON.stringify(KEY) };
    await expectStatus(200, made.ask('POST', '/owner/governance/apply', { text, values }));
    return made;
  });
  beforeEach(() => {
    world.upstream.answer = ({ method = '', url = '', headers, ...request }, response, body) => {
      const isSigned = url.startsWith('/s3');
      const at = { region: 'us-east-1', service: 's3', now: Date.now() };
      const received = { method, target: url, headers, body: Buffer.from(body) };
      const isKnown = isSigned
        ? awsProblem(received, KEY, at) === undefined
        : [headers.authorization, headers['x-api-key']].some((one) => String(one).endsWith(CANARY));
      const {
        status = 200,
        type = 'application/json',
        body: told,
      } = isKnown ? answerOf({ ...request, method, url } as never, body) : { status: 401, body: 'no credential' };
      response.writeHead(status, { 'content-type': type });
      response.end(typeof told === 'string' ? told : JSON.stringify(told));
    };
  });

  const agent = (platform: BuiltinName, { without, heldScope }: { without: string; heldScope: string }) => {
    const scopeList = Object.keys(manifestOf(platform).scopes).filter((scope) => scope !== without);
    return organisation.agent({
      rules: [{ effect: 'require_approval', scopes: [heldScope] }, { effect: 'allow' }],
      grants: { [platform]: { scopeList } },
    });
  };
  /** Approves the held call that an error message names. */
  const approve = async (refusal: string) => {
    expect(refusal).toContain('agent-broker: approval_pending');
    const [id] = /(?<=\/approve\/)[\w-]+/.exec(refusal) ?? [];
    await expectStatus(200, organisation.approve(id));
  };
  return { world, organisation, agent, approve };
}
