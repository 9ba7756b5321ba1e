import { Argument, type Command } from 'commander';
import { BUILTIN_NAMES, type BuiltinName } from '../../broker/platforms/builtin-names.ts';
import type { Added, AddOptions } from '../add-platform.ts';
import { commandWith } from '../command-with.ts';
import { print, withConnection } from '../connection.ts';

export function addAddCommand(program: Command): void {
  withConnection(
    program
      .command('add')
      .description(
        'add a built-in platform with a credential, which is tested first and stored only if the platform accepts it',
      )
      .addArgument(new Argument('<platform>', 'which').choices([...BUILTIN_NAMES])),
  )
    .option('--id <name>', 'id of the platform for agents; default: the prefix of its scopes')
    .option('--label <name>', 'name of the connection, to add another account to an existing one')
    .option(
      '--base-url <url>',
      'where it is, such as https://github.acme.example/api/v3; otherwise the public one, or of GitHub GITHUB_API_URL',
    )
    .option('--replace', 'replace the credential of the existing connection')
    .option('--token-stdin', 'read the token from standard input')
    .option('--token-env <name>', 'read the token from this variable of the environment')
    .option('--oauth', 'connect by OAuth: prints a link, and waits for the consent')
    .option('--client-id <id>', 'OAuth: the broker’s client id at the platform')
    .option(
      '--for <preset,…>',
      'OAuth: request what these presets need; default: all presets except everything',
      (text) => text.split(','),
    )
    .option('--client-secret-stdin', 'OAuth: read the client secret from standard input')
    .option('--client-secret-env <name>', 'OAuth: read the client secret from this variable')
    .option('--app', 'connect as a GitHub App, which is created in a browser')
    .option('--app-id <id>', 'App: an existing one, with --key-file')
    .option('--key-file <file>', 'App: file of its private key, created or existing; default: github-app.pem here')
    .option('--installation-id <number>', 'App: the installation id')
    .option('--org <name>', 'App: the organisation that owns it')
    .option('--no-wait', 'App: do not wait until it is installed')
    .option('--json', 'print JSON')
    .action(async (platform: BuiltinName, options: AddOptions) => {
      const { addPlatform } = await import('../add-platform.ts');
      // The variable by which GitHub's own tools and actions name a server other than github.com.
      const elsewhere = platform === 'github' ? process.env.GITHUB_API_URL : undefined;
      const given = { ...(elsewhere && { baseUrl: elsewhere }), ...options };
      const added = await addPlatform(platform, given, (text) => process.stderr.write(`${text}\n`));
      print(options, added, () => describeAdded(added, options));
    });
}

/** Most missing scopes that are listed by name; the rest are counted. */
const MAX = 6;

function describeAdded(
  { builtin, platform, base_url, connection, made, test, presets }: Added,
  options: AddOptions,
): string {
  const { account, expires_at, granted_scopes, lacking } = test;
  const short = (scope: string) => scope.slice(scope.indexOf(':') + 1);
  const more = lacking.length > MAX ? `, and ${lacking.length - MAX} more` : '';
  const needs = lacking.slice(0, MAX).map(({ scope, needs }) => `${short(scope)} (needs ${needs.join(' or ')})`);
  const next = `connect cursor --grant ${platform}=${presets[1]?.name ?? presets[0]?.name ?? 'SCOPE'}${builtin === 'github' ? " --repos 'OWNER/*'" : ''} --expires 30d`;
  return [
    `${made.platform ? 'Added' : made.connection ? 'Connected' : 'Replaced the credential of'} ${platform} (${builtin} at ${base_url}), connection "${connection}".`,
    account === null
      ? test.detail
      : `The credential is ${account}’s${expires_at === null ? '' : `, good until ${expires_at}`}.`,
    ...(granted_scopes === null
      ? ['The platform does not say what the credential may do; calls show it.']
      : [`It may do: ${granted_scopes.join(', ') || 'nothing but read what is public'}.`]),
    ...(lacking.length > 0 ? [`It is not enough for: ${needs.join('; ')}${more}.`] : []),
    ...(account !== null && test.detail.includes('Warning:')
      ? [test.detail.slice(test.detail.indexOf('Warning:'))]
      : []),
    '',
    'Agents may be granted these presets, or scopes one by one:',
    ...presets.map(
      ({ name, scopes }) =>
        `  ${name.padEnd(11)} ${scopes.length > 14 ? `${scopes.length} scopes` : scopes.map(short).join(', ')}`,
    ),
    '',
    `Next: ${commandWith(options, next)}`,
  ].join('\n');
}
