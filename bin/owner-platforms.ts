/** Lists the platforms of the broker from its owner API, and finds one by what a person typed. */
import { BUILTIN_NAMES, type BuiltinName } from '../broker/platforms/builtin-names.ts';
import type { BrokerConnection } from './connection.ts';
import { CommandFailed } from './failure.ts';

export type OwnedConnection = {
  id: string;
  label: string;
  default: boolean;
  state: 'connected' | 'reauth_needed' | 'needs_attention' | 'not_connected';
  connects_by: 'secret' | 'oauth' | 'app';
  /** null: the platform does not use OAuth. */
  redirect_uri: string | null;
};

export type OwnedPlatform = {
  platform_id: string;
  name: string;
  kind: string;
  base_url: string;
  builtin: BuiltinName | null;
  connections: OwnedConnection[];
};

export type WholePlatform = OwnedPlatform & {
  manifest: {
    auth: { type: string; client_id?: unknown; app_id?: unknown };
    recipients?: object;
    refs?: object;
    git_base_url?: string;
  };
  scopes: { scope: string }[];
  presets: { name: string; scopes: string[] }[];
};

/** The result of testing a connection. */
export type Tested = {
  ok: boolean;
  detail: string;
  account: string | null;
  expires_at: string | null;
  granted_scopes: string[] | null;
  lacking: { scope: string; needs: string[] }[];
};

export const listPlatforms = async (broker: BrokerConnection): Promise<OwnedPlatform[]> =>
  (await broker.ask('GET', '/owner/platforms')).platforms as OwnedPlatform[];

export const readPlatform = async (broker: BrokerConnection, id: string): Promise<WholePlatform> =>
  (await broker.ask('GET', `/owner/platforms/${encodeURIComponent(id)}`)) as WholePlatform;

export const makeConnection = async (broker: BrokerConnection, body: object) =>
  (await broker.ask('POST', '/owner/connections', body)) as OwnedConnection;

export const testConnection = async (broker: BrokerConnection, id: string) =>
  (await broker.ask('POST', `/owner/connections/${id}/test`)) as unknown as Tested;

const isBuiltin = (word: string): word is BuiltinName => BUILTIN_NAMES.some((name) => name === word);

/** `gh (GitHub at https://api.github.com)` */
export const described = ({ platform_id, name, base_url }: OwnedPlatform): string =>
  `${platform_id} (${name === platform_id ? '' : `${name} at `}${base_url})`;

/** Lists the platforms, and how to add one, as the end of a message. */
function whatThereIs({ command }: BrokerConnection, platforms: readonly OwnedPlatform[]): string {
  const there =
    platforms.length === 0
      ? 'There is none yet.'
      : `There ${platforms.length === 1 ? 'is' : 'are'}:\n${platforms.map((one) => `  ${described(one)}`).join('\n')}`;
  return `${there}\nAdd one: ${command('add NAME')}, where NAME is ${BUILTIN_NAMES.join(', ')}; an MCP server: ${command('add-mcp ADDRESS')}; others come with a governance file (docs/platforms.md).`;
}

/** Returns the platform with this id, or the only one of this built-in. Throws CommandFailed, which lists the platforms. */
export function platformNamed<P extends OwnedPlatform>(
  broker: BrokerConnection,
  word: string,
  platforms: readonly P[],
): P {
  const exact = platforms.find(({ platform_id: id }) => id === word);
  if (exact) return exact;
  const alike = isBuiltin(word) ? platforms.filter(({ builtin }) => builtin === word) : [];
  const [only, other] = alike;
  if (only && !other) return only;
  if (only)
    throw new CommandFailed(
      `Several platforms are ${word}: ${alike.map(described).join(', ')}. Name one of them by its id.`,
    );
  if (isBuiltin(word))
    throw new CommandFailed(
      `There is no platform "${word}" yet. Add it: ${broker.command(`add ${word}`)}\n${whatThereIs(broker, platforms)}`,
    );
  throw new CommandFailed(`There is no platform "${word}". ${whatThereIs(broker, platforms)}`);
}
