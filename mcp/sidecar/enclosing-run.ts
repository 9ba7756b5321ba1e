/** A run inside another run. */
import { dirname } from 'node:path';
import type { Environment } from './environment.ts';
import { GITHUB_BY_PROXY } from './git-rules.ts';

/** The name of a run's folder (bin/run/folder.ts), for Windows, where a run has no socket whose path names the folder. */
const RUN_FOLDER = /(?:^|[/\\])agent-broker-run-[0-9a-f]{8}-[^/\\]+(?:[/\\]|$)/;
const GIT_SETTING = /^GIT_CONFIG_(?:KEY|VALUE)_\d+$/;

/**
 * Returns the environment without what an enclosing run has set: addresses of its sidecar, its placeholder, and its files. Where the agent of the inner
 * run has no grant, its command would otherwise make requests as the agent of the enclosing one. Root certificates are kept: they include the user's own.
 */
export function withoutEnclosingRun(parent: Environment): Environment {
  const { AGENT_BROKER_RUN_URL: url, AGENT_BROKER_RUN_KEY: key, AGENT_BROKER_RUN_SOCKET: socket } = parent;
  if (!url || !key) return parent;
  const host = url.replace(/^http:\/\//, '');
  const isInFolder = (value: string) => (socket ? value.includes(dirname(socket)) : RUN_FOLDER.test(value));
  const isOfRun = (value: string) =>
    value.includes(host) || value.includes(key) || (isInFolder(value) && !value.endsWith('.pem'));
  const others = Object.entries(parent).filter(
    ([name, value]) => !(GIT_SETTING.test(name) || name === 'GIT_CONFIG_COUNT' || isOfRun(value ?? '')),
  );
  return { ...Object.fromEntries(others), ...gitSettings(parent, isOfRun) };
}

/** The numbered settings of git (git-config(1), GIT_CONFIG_COUNT) without those of the enclosing run, numbered again: git fails where one is absent. */
function gitSettings(parent: Environment, isOfRun: (value: string) => boolean): Environment {
  const { GIT_CONFIG_COUNT: count } = parent;
  if (count === undefined) return {};
  const pairs = Array.from({ length: Number(count) || 0 }, (_, i) => [
    parent[`GIT_CONFIG_KEY_${i}`] ?? '',
    parent[`GIT_CONFIG_VALUE_${i}`] ?? '',
  ]).filter(([key = '', value = '']) => !(isOfRun(key) || isOfRun(value) || key.includes(`.${GITHUB_BY_PROXY}.`)));
  return {
    GIT_CONFIG_COUNT: String(pairs.length),
    ...Object.fromEntries(
      pairs.flatMap(([key, value], i) => [
        [`GIT_CONFIG_KEY_${i}`, key],
        [`GIT_CONFIG_VALUE_${i}`, value],
      ]),
    ),
  };
}
