import { expect, test } from 'vitest';
import { unusedProxy } from '../../bin/doctor/checks.ts';
import { environmentProxy } from '../../mcp/client/signed-send.ts';

test('a proxy of the environment is used only with NODE_USE_ENV_PROXY, and otherwise mentioned in error messages', () => {
  const proxy = { https_proxy: 'http://proxy.example:3128' };
  expect(environmentProxy(proxy)).toEqual({});
  expect(unusedProxy(proxy)).toBe(' https_proxy is set, and used only with NODE_USE_ENV_PROXY=1.');
  const used = { ...proxy, NODE_USE_ENV_PROXY: '1' };
  expect(environmentProxy(used)).toEqual({ proxyEnv: used });
  expect([unusedProxy(used), unusedProxy({})]).toEqual(['', '']);
});
