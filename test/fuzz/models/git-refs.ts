/**
 * Pushes to a real git server: only refs that the current grant lists are written, only in ways that it allows, and only in its repositories; a
 * refused push writes nothing, and every push is recorded.
 */
import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { expect } from 'vitest';
import { github } from '../../../broker/platforms/builtin/github.ts';
import { expectStatus, send, type TestAgent } from '../../world/agent.ts';
import { commandList, ZERO } from '../../world/git-bytes.ts';
import { GIT_SCOPES, type GitWorld } from '../../world/git-world.ts';
import { git } from '../../world/servers/git-host.ts';
import { ALLOW_ALL, type Organisation } from '../../world/world.ts';
import type { Count, Fuzzed } from '../fuzz.ts';
import { sequences, step } from '../steps.ts';

const NAMES = [
  'heads/main',
  'heads/agent/a',
  'heads/agent/a-b',
  'heads/agent/b/c',
  'heads/release/1',
  'tags/v1',
  'tags/x',
].map((name) => `refs/${name}`);
const ACTIONS = ['create', 'update', 'delete'] as const;
type Action = (typeof ACTIONS)[number];
const PATTERNS = ['agent/*', 'agent/**', 'main', 'release/*', 'refs/tags/v*', 'refs/heads/agent/a'];
const REPOSITORIES = ['acme/app', 'acme/other'];

type Model = {
  refs: string[] | null;
  changes: Action[] | null;
  repos: string[] | null;
  writes: boolean;
  isSuspended: boolean;
  /** The object of each ref, by repository. */
  has: Map<string, Map<string, string>>;
  /** The refs of each push with their changes, as they must be recorded. */
  pushes: string[];
};
type Real = { organisation: Organisation; agent: TestAgent };

/** Whether a list of patterns allows a name (docs/governance.md, refs). */
const isListed = (list: readonly string[] | null, name: string) =>
  list === null ||
  list.some((pattern) => {
    const full = pattern.startsWith('refs/') ? pattern : `refs/heads/${pattern}`;
    const source = full.replaceAll('**', '\0').replaceAll('*', '[^/]*').replaceAll('\0', '.+');
    return new RegExp(`^${source}$`).test(name);
  });

/** A pack without objects: the pushed objects exist already. */
const EMPTY_PACK = (() => {
  const head = Buffer.from('5041434b0000000200000000', 'hex');
  return Buffer.concat([head, createHash('sha1').update(head).digest()]);
})();

export function gitRefs({ world, host }: GitWorld, count: Count): Fuzzed {
  const folders = new Map(REPOSITORIES.map((name) => [name, host.repository(name)]));
  const objects: string[] = [];
  for (const [, folder] of folders) {
    const [main = ''] = git(folder, 'rev-parse', 'main').trim().split('\n');
    const tree = git(folder, 'rev-parse', 'main^{tree}').trim();
    const next = git(folder, 'commit-tree', tree, '-p', main, '-m', 'next').trim();
    git(folder, 'update-ref', 'refs/keep/next', next);
    objects.push(main, next);
  }
  const stored = (repository: string): Map<string, string> =>
    new Map(
      git(
        folders.get(repository) as string,
        'for-each-ref',
        '--format=%(refname) %(objectname)',
        'refs/heads',
        'refs/tags',
      )
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => line.split(' ') as [string, string]),
    );

  const begin = async () => {
    world.clock.skewMs = 0;
    const organisation = await world.organisation();
    await organisation.platform({
      id: 'codehost',
      manifest: { ...github, base_url: host.url, git_base_url: host.url },
    });
    const agent = await organisation.agent({ rules: ALLOW_ALL, grants: { codehost: { scopeList: GIT_SCOPES } } });
    const has = new Map(REPOSITORIES.map((name) => [name, stored(name)]));
    const model: Model = { refs: null, changes: null, repos: null, writes: true, isSuspended: false, has, pushes: [] };
    return { model, real: { organisation, agent } };
  };

  const list = <T>(all: readonly T[]) => fc.option(fc.subarray([...all]), { freq: 3 });
  const grant = fc
    .record({
      refs: list(PATTERNS),
      ref_changes: fc.option(fc.subarray([...ACTIONS], { minLength: 1 }), { freq: 2 }),
      repos: fc.constantFrom(null, null, ['acme/app'], ['acme/*'], ['acme/OTHER'], []),
      writes: fc.constantFrom(true, true, true, false),
    })
    .map(({ writes, ...limits }) =>
      step<Model, Real>(`grant(${JSON.stringify({ writes, ...limits })})`, async (model, { organisation, agent }) => {
        const terms = { scopes: writes ? GIT_SCOPES : GIT_SCOPES.slice(0, 1), ...limits };
        await expectStatus(200, organisation.ask('POST', `/owner/agents/${agent.id}/grants/codehost`, terms));
        Object.assign(model, { refs: limits.refs, changes: limits.ref_changes, repos: limits.repos, writes });
      }),
    );
  const move = fc.constantFrom('suspend', 'resume', 'resume').map((verb) =>
    step<Model, Real>(
      verb,
      async (model, { organisation, agent }) => {
        await expectStatus(200, organisation.ask('POST', `/owner/agents/${agent.id}/${verb}`, {}));
        model.isSuspended = verb === 'suspend';
      },
      ({ isSuspended }) => isSuspended !== (verb === 'suspend'),
    ),
  );

  const wish = fc.record({ name: fc.constantFrom(...NAMES), to: fc.constantFrom(0, 1, 1, -1) });
  const push = fc
    .tuple(
      fc.constantFrom(...REPOSITORIES),
      fc.uniqueArray(wish, { minLength: 1, maxLength: 3, selector: ({ name }) => name }),
    )
    .map(([repository, wishes]) =>
      step<Model, Real>(`push ${repository} ${JSON.stringify(wishes)}`, async (model, { agent }) => {
        const own = model.has.get(repository) as Map<string, string>;
        const objectOf = (to: number) =>
          to < 0 ? ZERO : (objects[2 * REPOSITORIES.indexOf(repository) + to] as string);
        const commands = wishes
          .map(({ name, to }) => ({ name, before: own.get(name) ?? ZERO, after: objectOf(to) }))
          // git keeps the branch of HEAD, and deletes no ref that does not exist.
          .filter(({ name, before, after }) => before !== after && !(name === 'refs/heads/main' && after === ZERO));
        if (commands.length === 0) return;
        const actionOf = ({ before, after }: { before: string; after: string }): Action =>
          before === ZERO ? 'create' : after === ZERO ? 'delete' : 'update';
        const lines = commands.map(
          ({ name, before, after }, at) => `${before} ${after} ${name}${at === 0 ? '\0 report-status' : ''}`,
        );
        const hasPack = commands.some(({ after }) => after !== ZERO);
        const body = Buffer.concat([Buffer.from(commandList(lines)), ...(hasPack ? [EMPTY_PACK] : [])]);
        const answer = await send(`${agent.baseUrl}/git/${repository}/git-receive-pack`, {
          method: 'POST',
          headers: {
            authorization: `Basic ${Buffer.from(`x:${agent.token()}`).toString('base64')}`,
            'content-type': 'application/x-git-receive-pack-request',
          },
          body,
        });
        const isReached = model.repos?.some((one) => [repository, 'acme/*'].includes(one.toLowerCase())) ?? true;
        const isAllowed =
          !model.isSuspended &&
          model.writes &&
          isReached &&
          commands.every((one) => isListed(model.refs, one.name) && (model.changes?.includes(actionOf(one)) ?? true));
        count(isAllowed ? 'pushed' : 'refused');
        expect(answer.status, `${JSON.stringify(model.refs)} ${answer.text}`).toBe(isAllowed ? 200 : 403);
        if (isAllowed)
          for (const { name, after } of commands) {
            expect(answer.text).toContain(`ok ${name}\n`);
            if (after === ZERO) own.delete(name);
            else own.set(name, after);
          }
        const made = commands.map((one) => `${actionOf(one)} ${one.name}`);
        model.pushes.push(`${isAllowed ? 'allowed' : 'denied'} ${made.join()}`);
        expect(stored(repository)).toEqual(own);
      }),
    );

  const property = sequences<Model, Real>([push, push, push, push, grant, grant, move], {
    begin,
    end: async ({ pushes }, { organisation }) => {
      const exported = await organisation.ask('GET', '/owner/audit/export');
      const rows = exported.text
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line))
        .filter(({ kind }) => kind === 'action');
      type Pushed = { ref: string; action: string };
      const onRecord = rows.map(
        ({ result, flags }) =>
          `${result} ${flags.pushed_refs.map(({ ref, action }: Pushed) => `${action} ${ref}`).join()}`,
      );
      expect(onRecord.toSorted()).toEqual(pushes.toSorted());
    },
  });
  return { property, reaches: ['pushed', 'refused'] };
}
