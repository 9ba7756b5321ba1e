/** Which connection a tool's variables lead to, and what becomes of the variables that were there. */
import { describe, expect, test } from 'vitest';
import { choose, codehostOf, environmentFor, type Granted, grantedOf } from '../../mcp/sidecar/environment.ts';

const granted = (name: string, platform: string, platformName = platform, isDefault = false): Granted => ({
  ...{ name, platform, platformName, isDefault },
});
const run = (connections: readonly Granted[]) => ({
  ...{ url: 'http://127.0.0.1:7', placeholder: 'KEY', folder: '/f', socket: undefined, isStrict: false },
  ...{ chosen: choose(connections), codeHosts: ['https://github.com/'] },
});

describe('the connection of a tool', () => {
  test('is the default of the platform’s usual id, before others of the same built-in', () => {
    const others = [granted('eu', 'openai-eu', 'OpenAI', true), granted('two', 'openai', 'OpenAI')];
    const [chosen] = choose([...others, granted('one', 'openai', 'OpenAI', true)]);
    expect(chosen?.connection.name).toBe('one');
    expect(chosen?.others.map(({ name }) => name)).toEqual(['two', 'eu']);
    expect(choose(others.slice(0, 1))[0]?.connection.name).toBe('eu');
    expect(choose([granted('crm', 'crm')])).toEqual([]);
  });

  test('of git is one of codehost alone', () => {
    expect(codehostOf(choose([granted('gh', 'codehost')]))).toBe('gh');
    expect(codehostOf(choose([granted('gh', 'our-github', 'GitHub')]))).toBeUndefined();
  });

  test('is called by its id where it has no label, and MCP servers are none', () => {
    const one = { scopes: [], requireApproval: false };
    const connection = { ...one, connection_id: 'id-1', label: null, status: 'active' as const, default: true };
    const platforms = [
      { ...one, platformId: 'crm', platformName: 'CRM', connections: [connection] },
      { ...one, platformId: 'docs', platformName: 'Docs', serverName: 'docs', connections: [connection] },
      { ...one, platformId: 'bare', platformName: 'Bare' },
    ];
    const permissions = { agent: { id: 'a', name: 'a' }, platforms, version: '1' };
    expect(grantedOf(permissions)).toEqual([granted('id-1', 'crm', 'CRM', true)]);
  });
});

describe('the environment', () => {
  test('has an address for a label of any letters', () => {
    const { environment } = environmentFor({}, run([granted('a b/ü', 'openai')]));
    expect(environment.OPENAI_BASE_URL).toBe('http://127.0.0.1:7/proxy/a%20b%2F%C3%BC');
  });

  test('has no setting of git without a code host, and adds to those that are there', () => {
    const parent = { GIT_CONFIG_COUNT: '2' };
    expect(environmentFor(parent, run([granted('o', 'openai')])).environment.GIT_CONFIG_COUNT).toBe('2');
    const { environment } = environmentFor(parent, run([granted('gh', 'codehost')]));
    expect(environment).toMatchObject({
      GIT_CONFIG_COUNT: '5',
      GIT_CONFIG_KEY_4: 'url.http://127.0.0.1:7/git/.insteadOf',
      GIT_CONFIG_VALUE_4: 'https://github.com/',
    });
  });

  test('leads past a proxy that is set, and sets none', () => {
    const connections = run([granted('o', 'openai')]);
    const { environment } = environmentFor({ HTTPS_PROXY: 'http://p', no_proxy: 'x.example' }, connections);
    expect(environment).toMatchObject({
      HTTPS_PROXY: 'http://p',
      no_proxy: 'x.example,127.0.0.1,localhost',
      NO_PROXY: 'x.example,127.0.0.1,localhost',
    });
    expect(environmentFor({}, connections).environment).not.toHaveProperty('NO_PROXY');
  });
});
