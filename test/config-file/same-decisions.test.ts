/** Decisions depend only on the file or export that was applied, whatever was there before: checked by real calls on random states. */
import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { makeKeyPair } from '../world/agent.ts';
import { startMcpServer } from '../world/mcp/server.ts';
import { sized } from '../world/runner/thorough.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { givenWorld, shared } from '../world/world.ts';
import { ByFile, type Outcome } from './world-from-file.ts';

const NAMES = ['a', 'b', 'c'];
const KEYS = new Map(NAMES.map((name) => [name, makeKeyPair()]));
const ACTIONS = [
  { platform: 'crm', endpoint: '/messages', method: 'GET', scope: 'crm:read' },
  { platform: 'crm', endpoint: '/messages', method: 'POST', scope: 'crm:write', data: { to: 'x@acme.example' } },
  { platform: 'crm', endpoint: '/messages', method: 'POST', scope: 'crm:write', data: { to: 'x@evil.example', n: 5 } },
  { platform: 'codehost', endpoint: '/repos/acme/one', method: 'GET', scope: 'codehost:read' },
  { platform: 'codehost', endpoint: '/orgs/acme/repos', method: 'POST', scope: 'codehost:create', data: { name: 'n' } },
  writing('refs/heads/agent/one'),
  writing('refs/heads/main'),
  { git: '/git/acme/one.git/info/refs?service=git-upload-pack' },
  { git: '/git/other/one.git/info/refs?service=git-upload-pack' },
  graphql('issues:read', 'query { issues { id } }'),
  graphql('issues:write', 'mutation { issueCreate(title: "x") { id } }'),
  tool('search', 'tools:read'),
  tool('drop', 'tools:write'),
];
const SCOPES = {
  crm: ['crm:read', 'crm:write'],
  codehost: ['codehost:read', 'codehost:create', 'codehost:write'],
  issues: ['issues:read', 'issues:write'],
  tools: ['tools:read', 'tools:write'],
};

function writing(ref: string) {
  const endpoint = '/repos/acme/one/git/refs';
  return { platform: 'codehost', endpoint, method: 'POST', scope: 'codehost:write', data: { ref } };
}
function graphql(scope: string, query: string) {
  return { platform: 'issues', endpoint: '/', method: 'POST', scope, data: { query } };
}
function tool(name: string, scope: string) {
  return { platform: 'tools', endpoint: `/tools/${name}`, method: 'POST', scope, data: { n: 1 } };
}

const often = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined, freq: 3 });
const termsOn = (platform: keyof typeof SCOPES, connections: readonly string[]) =>
  fc.record(
    {
      scopes: fc.subarray(SCOPES[platform], { minLength: 1 }),
      expires: fc.constantFrom('30d', '1m', '2999-01-31T18:00:00+02:00', '2020-01-01T00:00:00Z'),
      require_approval: fc.boolean(),
      recipients: fc.subarray(['@acme.example', 'x@evil.example']),
      repos: fc.constantFrom(['acme/*'], ['acme/two'], []),
      allow_repo_creation: fc.boolean(),
      refs: fc.constantFrom(['agent/*'], []),
      ref_changes: fc.subarray(['create', 'update', 'delete'] as const),
      connection: fc.constantFrom(...connections),
    },
    { requiredKeys: ['scopes'] },
  );
const rule = (effects: readonly string[]) =>
  fc.record(
    {
      effect: fc.constantFrom(...effects),
      scopes: fc.constantFrom(['*:read'], ['crm:*'], ['codehost:create'], ['issues:*', 'tools:*'], ['codehost:*']),
      methods: fc.constantFrom(['GET'], ['POST']),
      when: fc.constantFrom('has(request.body.n) && request.body.n > 3', 'request.body.n > 3'),
    },
    { requiredKeys: ['effect'] },
  );

/** Every section is present, so that a file is complete. */
const documents = fc.record({
  suspendedPlatform: fc.boolean(),
  swapped: fc.boolean(),
  rules: fc.array(rule(['allow', 'allow', 'deny', 'require_approval']), { maxLength: 3 }),
  guardrails: fc.array(rule(['deny', 'require_approval']), { maxLength: 1 }),
  agents: fc.record(
    Object.fromEntries(
      NAMES.map((name) => [
        name,
        often(
          fc.record({
            suspended: fc.boolean(),
            own: fc.boolean(),
            crm: often(termsOn('crm', ['main', 'other'])),
            codehost: often(termsOn('codehost', ['hub'])),
            issues: often(termsOn('issues', ['tracker'])),
            tools: often(termsOn('tools', ['server'])),
          }),
        ),
      ]),
    ),
  ),
});
type Said = typeof documents extends fc.Arbitrary<infer One> ? One : never;

function documentOf({ url, mcp }: { url: string; mcp: string }, said: Said, suspends: boolean) {
  const agents = Object.entries(said.agents).flatMap(([name, agent]) => {
    if (!agent) return [];
    const { suspended, own, crm, codehost, issues, tools } = agent;
    return [
      [
        name,
        {
          policy: own ? 'own' : 'default',
          ...(suspends && suspended && { suspended: true }),
          public_key: { pem: KEYS.get(name)!.publicPem },
          grants: {
            ...(crm && { crm }),
            ...(codehost && { codehost }),
            ...(issues && { issues }),
            ...(tools && { tools }),
          },
        },
      ] as const,
    ];
  });
  const platform = { kind: 'rest', base_url: url, auth: { type: 'bearer' } };
  return {
    owners: [],
    platforms: {
      crm: {
        ...platform,
        scopes: { 'crm:read': ['GET /**'], 'crm:write': ['POST /**'] },
        recipients: { 'POST /messages': ['/to'] },
        ...(suspends && said.suspendedPlatform && { suspended: true }),
      },
      codehost: {
        ...platform,
        git_base_url: url,
        scopes: {
          'codehost:read': ['GET /repos/**', 'GET /git/*/*/info/refs', 'POST /git/*/*/git-upload-pack'],
          'codehost:create': ['POST /orgs/*/repos'],
          'codehost:write': ['POST /repos/*/*/git/refs'],
        },
        refs: { 'POST /repos/*/*/git/refs': [{ in: 'body', at: '/ref', action: 'create' }] },
      },
      issues: {
        ...platform,
        kind: 'graphql',
        scopes: { 'issues:read': ['query *'], 'issues:write': ['mutation *'] },
      },
      tools: {
        ...platform,
        kind: 'mcp',
        base_url: mcp,
        scopes: { 'tools:read': ['tool search'], 'tools:write': ['tool drop'] },
      },
    },
    connections: {
      main: { platform: 'crm', secret: { env: said.swapped ? 'OTHER' : 'MAIN' }, default: !said.swapped },
      other: { platform: 'crm', secret: { env: said.swapped ? 'MAIN' : 'OTHER' }, default: said.swapped },
      hub: { platform: 'codehost', secret: { env: 'MAIN' } },
      tracker: { platform: 'issues', secret: { env: said.swapped ? 'OTHER' : 'MAIN' } },
      server: { platform: 'tools', secret: { env: 'MAIN' } },
    },
    policies: { own: { rules: said.rules } },
    guardrails: said.guardrails.map((one, i) => ({ name: `guardrail ${i}`, ...one })),
    agents: Object.fromEntries(agents),
  };
}

describe.each(ONE_STORE)(`decisions on %s${postgresNote}`, (store) => {
  const mcp = shared(() => startMcpServer());
  const world = givenWorld(store);
  beforeAll(async () => {
    world.environment.AGENT_BROKER_ALLOW_PRIVATE += `,${mcp.address}`;
    await world.restart();
    mcp.tools = [{ name: 'search', annotations: { readOnlyHint: true } }, { name: 'drop' }];
  });

  async function outcomes(governed: ByFile): Promise<Record<string, Outcome[]>> {
    const all: Record<string, Outcome[]> = {};
    const agents = governed.agents();
    for (const name of NAMES) {
      all[name] = [];
      for (const action of ACTIONS) all[name].push(await governed.call(name, action, agents));
    }
    return all;
  }
  /** A revoked agent and a missing one are refused in the same way. Git reports a halt without its reason. */
  const revokedIsNone = (all: Record<string, Outcome[]>) =>
    JSON.parse(
      JSON.stringify(all, (_, value) =>
        ['agent_revoked', 'agent_halted', 'no such agent'].includes(value?.reason) ? 'nobody' : value,
      ),
    );
  const document = (said: Said, suspends = false) =>
    documentOf({ url: world.upstream.url, mcp: mcp.url }, said, suspends);

  /** Makes the changes of an owner. */
  async function meddle(governed: ByFile, hands: readonly Hand[]): Promise<void> {
    for (const { name, does } of hands) {
      const agent = (await governed.agents()).get(name);
      if (agent === undefined) continue;
      const path =
        does === 'suspend' ? `/owner/agents/${agent.agentId}/suspend` : `/owner/agents/${agent.agentId}/grants/crm`;
      // Refused where that is not possible, such as for a revoked agent, which is a valid state, too.
      await governed.organisation.ask('POST', path, does === 'suspend' ? {} : { scopes: ['crm:read'], ...does });
    }
  }
  type Hand = { name: string; does: 'suspend' | { require_approval?: boolean } };
  const hands = (withSuspend: boolean): fc.Arbitrary<Hand[]> =>
    fc.array(
      fc.record({
        name: fc.constantFrom(...NAMES),
        does: fc.constantFrom<Hand['does']>(
          {},
          { require_approval: true },
          ...(withSuspend ? ['suspend' as const] : []),
        ),
      }),
      { maxLength: 3 },
    );

  test('equal those of the file on a fresh broker, whatever state it was applied to', {
    timeout: 720_000,
  }, async () => {
    await fc.assert(
      fc.asyncProperty(documents, hands(false), documents, async (before, byHand, after) => {
        const changed = await ByFile.make(world, KEYS);
        await changed.apply(document(before));
        await meddle(changed, byHand);
        await changed.apply(document(after));
        const fresh = await ByFile.make(world, KEYS);
        await fresh.apply(document(after));
        expect(revokedIsNone(await outcomes(changed))).toEqual(revokedIsNone(await outcomes(fresh)));
        expect(await changed.apply(document(after))).toEqual([]);
      }),
      { numRuns: sized(2, 8) },
    );
  });

  test('on a fresh broker equal those of the broker that was exported', { timeout: 720_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(documents, hands(true), fc.boolean(), async (said, byHand, later) => {
        const source = await ByFile.make(world, KEYS);
        await source.apply(document(said, true));
        await meddle(source, byHand);
        // By then a span of a minute has ended.
        if (later) world.clock.skewMs += 90_000;
        const text = await source.export();
        expect(await source.apply(text)).toEqual([]);
        const fresh = await ByFile.make(world, KEYS);
        // The fresh broker has a guardrail that the export does not contain.
        await fresh.organisation.guardrails([{ name: 'stop', effect: 'deny' }]);
        await fresh.apply(text.replace(/^organisation: .*\n/, ''));
        expect(revokedIsNone(await outcomes(fresh))).toEqual(revokedIsNone(await outcomes(source)));
        expect((await fresh.export()).replace(/^organisation: .*\n/, '')).toContain('agents:');
      }),
      { numRuns: sized(2, 8) },
    );
  });
});
