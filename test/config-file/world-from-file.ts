/** An organisation of a complete broker that is governed by a file, and the outcomes of its agents' real calls. */
import { expect } from 'vitest';
import { type Answer, expectStatus, type KeyPair, send, TestAgent } from '../world/agent.ts';
import type { Organisation, World } from '../world/world.ts';

export type Change = { action: string; kind: string; name: string; details: string[] };

/** Secrets of the connections in test files, by the names in their references. */
export const SECRETS = { 'env:MAIN': 'CANARY-main-0123456789', 'env:OTHER': 'CANARY-other-0123456789' };

export class ByFile {
  readonly world: World;
  readonly organisation: Organisation;
  /** Key pairs of the agents, by name. */
  readonly keys: ReadonlyMap<string, KeyPair>;

  constructor(world: World, organisation: Organisation, keys: ReadonlyMap<string, KeyPair>) {
    this.world = world;
    this.organisation = organisation;
    this.keys = keys;
  }

  static async make(world: World, keys: ReadonlyMap<string, KeyPair>): Promise<ByFile> {
    return new ByFile(world, await world.organisation(), keys);
  }

  /** JSON is valid YAML. */
  #ask(verb: 'plan' | 'apply', document: object | string): Promise<Answer> {
    const text = typeof document === 'string' ? document : JSON.stringify(document);
    return this.organisation.ask('POST', `/owner/governance/${verb}`, { text, values: SECRETS });
  }

  async plan(document: object | string): Promise<Change[]> {
    const planned = await expectStatus(200, this.#ask('plan', document));
    return planned.body.changes;
  }

  /** Plans and applies. Checks that the apply makes the planned changes. */
  async apply(document: object | string): Promise<Change[]> {
    const planned = await this.plan(document);
    const applied = await expectStatus(200, this.#ask('apply', document));
    // A span starts when it is planned or applied.
    expect(withoutMoments(applied.body.changes)).toEqual(withoutMoments(planned));
    return planned;
  }

  async export(): Promise<string> {
    const exported = await expectStatus(200, this.organisation.ask('GET', '/owner/governance'));
    return exported.body.text;
  }

  async agents(): Promise<Map<string, TestAgent>> {
    const { agents } = (await this.organisation.ask('GET', '/owner/agents')).body;
    return new Map(
      agents.map(({ id, name, agent_id: agentId, owner_id: ownerId }: Record<string, string>) => {
        const { baseUrl } = this.world.running;
        const agent = new TestAgent({
          baseUrl,
          id: id!,
          agentId: agentId!,
          ownerId: ownerId!,
          keys: this.keys.get(name!)!,
        });
        agent.clock = () => Date.now() + this.world.clock.skewMs;
        return [name!, agent];
      }),
    );
  }

  /**
   * Makes a call of the agent with this name. `action`: a call, or the path of a request of git. Returns status, reason, and the credential that the
   * platform received.
   */
  async call(name: string, action: Record<string, unknown>, agents = this.agents()): Promise<Outcome> {
    const agent = (await agents).get(name);
    if (!agent) return { status: 0, reason: 'no such agent', credential: undefined };
    const before = this.world.upstream.seen.length;
    if (typeof action.git === 'string') {
      const authorization = `Basic ${Buffer.from(`x:${agent.token()}`).toString('base64')}`;
      const { status, text } = await send(agent.baseUrl + action.git, { headers: { authorization } });
      return {
        status,
        reason: /[a-z]+(?:_[a-z]+)+/.exec(text)?.[0],
        credential: this.world.upstream.seen[before]?.headers.authorization,
      };
    }
    const answer = await agent.act(action);
    const seen = this.world.upstream.seen.slice(before);
    expect(seen.length).toBeLessThan(2);
    return {
      status: answer.status,
      reason: answer.body.reason ?? answer.body.error ?? answer.body._meta?.reason,
      credential: seen[0]?.headers.authorization,
    };
  }
}

const withoutMoments = (changes: readonly Change[]): unknown =>
  JSON.parse(JSON.stringify(changes).replace(/\(\d{4}-.*?Z\)/g, ''));

export type Outcome = { status: number; reason: string | undefined; credential: string | undefined };
