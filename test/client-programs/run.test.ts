/** Agent programs whose calls to their model go through the broker, by the environment variables that `agent-broker run` sets. */
import { describe, expect, test } from 'vitest';
import { manifestOf } from '../platforms/classified.ts';
import { profileOf, run, sh } from '../sidecar/run-world.ts';
import { ALLOW_ALL, givenWorld, shared } from '../world/world.ts';
import { startModelServer } from './model-server.ts';
import { binOf, isInstalled } from './programs.ts';

/** The arguments of each program, as shell text. Codex needs its base URL as an option, since it reads it from no variable. */
const LINES = {
  claude: '-p "Say something."',
  codex: `exec --skip-git-repo-check -c model=gpt-5 -c model_provider=broker -c "model_providers.broker={name='broker',base_url='$OPENAI_BASE_URL',env_key='OPENAI_API_KEY',wire_api='responses'}" "Say something."`,
  qwen: '-p "Say something." --auth-type openai -m model',
};

describe('with agent-broker run', { timeout: 360_000 }, () => {
  const model = shared(() => startModelServer());
  const world = givenWorld('sqlite', () => ({ AGENT_BROKER_ALLOW_PRIVATE: new URL(model.url).host }));
  const organisation = shared(async () => {
    const made = await world.organisation();
    await made.platform({ id: 'openai', manifest: { ...manifestOf('openai'), base_url: `${model.url}/v1` } });
    await made.platform({ id: 'anthropic', manifest: { ...manifestOf('anthropic'), base_url: model.url } });
    return made;
  });
  const scopeList = (name: 'openai' | 'anthropic') => Object.keys(manifestOf(name).scopes);

  for (const [bin, words] of Object.entries(LINES))
    test.skipIf(!isInstalled(bin))(`${bin} asks its model through the broker`, async () => {
      const grants = { openai: { scopeList: scopeList('openai') }, anthropic: { scopeList: scopeList('anthropic') } };
      const agent = await organisation.agent({ rules: ALLOW_ALL, grants });
      const env = { CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1' };
      const { code, stdout, stderr } = await run(profileOf(agent), sh(`'${binOf(bin)}' ${words}`), env);
      expect(code, stdout + stderr).toBe(0);
      expect(stdout).toContain(model.words);
      const { rows } = (await organisation.ask('GET', `/owner/audit?agent=${agent.agentId}`)).body;
      expect(rows.length).toBeGreaterThan(0);
      for (const row of rows) expect(row).toMatchObject({ reason: 'approved', upstream_status: 200 });
      expect(model.unknown).toEqual([]);
    });
});
