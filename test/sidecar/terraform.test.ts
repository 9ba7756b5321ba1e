/** Terraform's two backends that speak plain HTTP, by the lines of docs/unmodified.md. The program is in no registry of Debian or npm. */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { BUCKET } from '../world/servers/object-store.ts';
import { newFolder } from '../world/stores.ts';
import { ALLOW_ALL, CANARY, givenWorld, shared } from '../world/world.ts';
import { givenObjectStore } from './object-store-world.ts';
import { typed } from './page-lines.ts';
import { profileOf, run, sh } from './run-world.ts';

const isInstalled = spawnSync('terraform', ['version']).status === 0;
if (!isInstalled) console.warn('terraform is not installed, so its lines are not tested.');

const QUIET = { CHECKPOINT_DISABLE: '1', TF_IN_AUTOMATION: '1', TF_CLI_ARGS: '-no-color' };

/** Creates a folder with a configuration that keeps its state in `backend`. */
function configuration(backend: string): string {
  const folder = newFolder();
  writeFileSync(
    join(folder, 'main.tf'),
    `terraform {\n${backend}\n}\nresource "terraform_data" "greeting" {\n  input = "hello"\n}\n`,
  );
  return folder;
}
const resourcesOf = (state: string | undefined): string[] =>
  JSON.parse(state ?? '{}').resources.map(({ type, name }: { type: string; name: string }) => `${type}.${name}`);

describe.skipIf(!isInstalled)('terraform', { timeout: 180_000 }, () => {
  describe('state in S3', () => {
    const { store, organisation } = givenObjectStore();
    const profileWith = async (...scopes: string[]) =>
      profileOf(
        await organisation.agent({
          rules: ALLOW_ALL,
          grants: { s3: { scopeList: scopes.map((scope) => `s3:${scope}`) } },
        }),
      );
    const STATE = 'app/terraform.tfstate';
    const folder = configuration(
      `backend "s3" {\n bucket = "${BUCKET}"\n key = "${STATE}"\n region = "us-east-1"\n use_lockfile = true\n }`,
    );
    let profile: string;
    beforeAll(async () => {
      profile = await profileWith('listing.read', 'objects.read', 'objects.write', 'objects.delete');
      const { code, stderr } = await typed('terraform, state in S3', profile, QUIET, folder);
      expect(code, stderr).toBe(0);
    });
    const terraform = (words: string, by = profile) => run(by, sh(`cd '${folder}' && terraform ${words}`), QUIET);

    test('is written under a lock, and read by the next run', async () => {
      const applied = await terraform('apply -auto-approve');
      expect(applied.code, applied.stdout + applied.stderr).toBe(0);
      expect(resourcesOf(store.objects.get(STATE)?.toString())).toEqual(['terraform_data.greeting']);
      expect([...store.objects.keys()]).toEqual([STATE]);
      const planned = await terraform('plan -detailed-exitcode');
      expect(planned.code, planned.stdout + planned.stderr).toBe(0);
      expect(store.problems).toEqual([]);
    });

    test("another user's lock is respected", async () => {
      const lock = { ID: 'x', Operation: 'OperationTypeApply', Who: 'somebody', Created: '2026-01-01T00:00:00Z' };
      store.objects.set(`${STATE}.tflock`, Buffer.from(JSON.stringify(lock)));
      const applied = await terraform('apply -auto-approve -replace terraform_data.greeting');
      expect(applied.code).toBe(1);
      expect(applied.stderr).toContain('Who:       somebody');
      store.objects.delete(`${STATE}.tflock`);
    });

    test('is not written by an agent with read scopes only, and Terraform prints the reason', async () => {
      const reader = await profileWith('listing.read', 'objects.read');
      const read = await terraform('plan -lock=false', reader);
      expect(read.code, read.stderr).toBe(0);
      const applied = await terraform('apply -auto-approve -lock=false -replace terraform_data.greeting', reader);
      expect(applied.code).toBe(1);
      expect(applied.stderr.replace(/\s+/g, ' ')).toContain('s3:objects.write');
    });
  });

  describe('state over HTTP', () => {
    const world = givenWorld('sqlite');
    const kept = new Map<string, string>();
    let writes = 0;
    const organisation = shared(async () => {
      const made = await world.organisation();
      const scopes = { 'states:use': ['GET /*', 'POST /*', 'POST /*/lock', 'DELETE /*/lock'] };
      await made.platform({ id: 'states', manifest: { base_url: world.upstream.url, scopes } });
      return made;
    });
    const profileWith = async (rules: readonly unknown[]) =>
      profileOf(await organisation.agent({ rules, grants: { states: { scopeList: ['states:use'] } } }));
    beforeEach(() => {
      world.upstream.answer = ({ method = '', url = '', headers }, response, body) => {
        const path = url.replace(/\?.*$/s, '');
        const found = kept.get(path);
        const isLocked = method === 'POST' && path.endsWith('/lock') && found !== undefined;
        const isKnown = headers.authorization === `Bearer ${CANARY}`;
        if (isKnown && method === 'DELETE') kept.delete(path);
        if (isKnown && method === 'POST' && !isLocked) {
          kept.set(path, body.toString());
          writes++;
        }
        response.writeHead(!isKnown ? 401 : isLocked ? 423 : method === 'GET' && found === undefined ? 404 : 200, {
          'content-type': 'application/json',
        });
        response.end(method === 'GET' || isLocked ? found : undefined);
      };
    });

    const ADDRESS = `export TF_HTTP_ADDRESS="$AGENT_BROKER_RUN_URL/proxy/states-main/app" TF_HTTP_USERNAME=agent TF_HTTP_PASSWORD="$AGENT_BROKER_RUN_KEY"`;
    const LOCKS = `export TF_HTTP_LOCK_ADDRESS="$TF_HTTP_ADDRESS/lock" TF_HTTP_LOCK_METHOD=POST TF_HTTP_UNLOCK_ADDRESS="$TF_HTTP_ADDRESS/lock" TF_HTTP_UNLOCK_METHOD=DELETE`;
    /** Runs the line of the page; further lines run in the same folder. */
    const begun = async (profile: string): Promise<string> => {
      const folder = configuration('backend "http" {}');
      const { code, stderr } = await typed('terraform, state over HTTP', profile, QUIET, folder);
      expect(code, stderr).toBe(0);
      return folder;
    };
    const APPLY = 'terraform apply -auto-approve';

    test('is written with and without a lock', async () => {
      const profile = await profileWith(ALLOW_ALL);
      const folder = await begun(profile);
      const applied = await run(profile, sh(`cd '${folder}'; ${ADDRESS}; ${APPLY}`), QUIET);
      expect(applied.code, applied.stderr).toBe(0);
      expect(resourcesOf(kept.get('/app'))).toEqual(['terraform_data.greeting']);
      const lines = `cd '${folder}'; ${ADDRESS}; ${LOCKS}; terraform init -reconfigure && ${APPLY} -replace terraform_data.greeting`;
      const locked = await run(profile, sh(lines), QUIET);
      expect(locked.code, locked.stdout + locked.stderr).toBe(0);
      expect(JSON.parse(kept.get('/app') ?? '').serial).toBeGreaterThan(1);
      kept.set('/app/lock', JSON.stringify({ ID: 'x', Who: 'somebody' }));
      const refused = await run(profile, sh(lines), QUIET);
      expect([refused.code, kept.get('/app/lock')]).toEqual([1, JSON.stringify({ ID: 'x', Who: 'somebody' })]);
      expect(refused.stderr).toContain('already locked: ID=x');
    });

    test('waits for an approval, and is written once', async () => {
      const profile = await profileWith([...ALLOW_ALL, { effect: 'require_approval', methods: ['POST'] }]);
      const folder = await begun(profile);
      const before = writes;
      const applying = run(profile, sh(`cd '${folder}'; ${ADDRESS}; ${APPLY} -replace terraform_data.greeting`), QUIET);
      await expect.poll(async () => (await organisation.pending()).length, { timeout: 20_000, interval: 100 }).toBe(1);
      const [{ approval_id: id }] = await organisation.pending();
      expect((await organisation.approve(id)).status).toBe(200);
      const { code, stderr } = await applying;
      expect(code, stderr).toBe(0);
      expect(writes - before).toBe(1);
    });
  });
});
