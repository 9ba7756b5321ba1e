/** The files in which tools keep credentials: their paths, how to recognise them, and advice. */
import { readdirSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { PROGRAM } from '../program-name.ts';
import type { Place } from './finding.ts';
import { variablesIn } from './variables.ts';

/** `look`: describes the content without values; undefined: no credential. Without `look`, the file itself is a credential. */
export type CredentialFile = {
  paths: (place: Place) => readonly string[];
  what: string;
  look?: (text: string) => string | undefined;
  advice: string;
};

const under =
  (...paths: string[]) =>
  ({ home }: Place): string[] =>
    paths.map((path) => join(home, path));

/** Returns the files in a folder whose name matches. */
function inFolder(folder: string, name: RegExp): string[] {
  try {
    return readdirSync(folder)
      .filter((one) => name.test(one))
      .map((one) => join(folder, one));
  } catch {
    return [];
  }
}

/** Returns the matching files from the working folder up to the root. */
function upwards({ cwd }: Place, name: RegExp): string[] {
  const found: string[] = [];
  for (let folder = cwd; ; folder = dirname(folder)) {
    found.push(...inFolder(folder, name));
    if (folder === dirname(folder)) return found;
  }
}

const config = ({ env, home }: Place): string => env.XDG_CONFIG_HOME || join(home, '.config');
/** Paths in the folders in which tools keep settings: XDG's, Windows' and macOS'. Each tool has its file in one of them. */
const inConfigs = (place: Place, ...paths: string[]): string[] =>
  [
    config(place),
    place.env.APPDATA,
    place.env.LOCALAPPDATA,
    ...under('Library/Application Support', 'Library/Preferences')(place),
  ].flatMap((folder) => (folder ? paths.map((path) => join(folder, path)) : []));
const each = (text: string, pattern: RegExp): string[] => [
  ...new Set([...text.matchAll(pattern)].map(([, found = '']) => found)),
];
const listed = (names: readonly string[], what: string): string | undefined =>
  names.length === 0 ? undefined : `${what} ${names.join(', ')}`;

const HIDE = 'Keep it out of reach: start the command as another user, or in a sandbox without your home folder';
const ADD = (name: string) => `Connect it with "${PROGRAM} add ${name}"`;
const ADD_REGISTRY = `${ADD('npm')}, and remove the line; ${PROGRAM} run sets its own registry and token`;

/** A secret with its value in the files of rclone, s3cmd, gsutil and MinIO's client. */
const STORE_KEY =
  /(?:^|[\s"'{,])(?:(?:aws_|gs_)?secret_access_key|secret_key|secretKey|pass|token|client_secret|service_account_credentials|account_key|key)["']?[ \t]*[=:][ \t]*["']?[^\s"',}]/m;

export const CREDENTIAL_FILES: readonly CredentialFile[] = [
  {
    paths: (place) =>
      place.env.GH_CONFIG_DIR
        ? [join(place.env.GH_CONFIG_DIR, 'hosts.yml')]
        : inConfigs(place, 'gh/hosts.yml', 'GitHub CLI/hosts.yml'),
    what: 'the sign-in of gh',
    // Without a token in the file, the token is in the system's keyring, where gh reads it.
    look: (text) => listed(each(text, /^['"]?([\w.-]+)['"]?:\s*$/gm), 'for') ?? 'in the keyring',
    advice: `${ADD('github')}, then "gh auth logout"; ${PROGRAM} run gives gh its own configuration`,
  },
  {
    paths: ({ env, home }) => (env.NETRC ? [env.NETRC] : [join(home, '.netrc'), join(home, '_netrc')]),
    what: 'passwords',
    look: (text) =>
      /\bpassword\s+\S/.test(text) ? (listed(each(text, /\bmachine\s+(\S+)/g), 'for') ?? 'for any host') : undefined,
    advice: `Connect the hosts, and take their entries out. ${HIDE}`,
  },
  {
    // pnpm reads files of its own in addition to npm's (pnpm, "Authentication Settings").
    paths: (place) => [
      place.env.npm_config_userconfig || join(place.home, '.npmrc'),
      ...upwards(place, /^\.npmrc$/),
      ...inConfigs(place, 'pnpm/auth.ini', 'pnpm/rc', 'pnpm/config/rc'),
    ],
    what: 'tokens of registries',
    // A variable in braces refers to the environment, which is searched separately.
    look: (text) =>
      listed(each(text, /^\s*((?:\/\/[^\s=]+:)?_(?:authToken|auth|password))\s*=\s*(?!\$\{|\s*$)/gm), 'in'),
    advice: ADD_REGISTRY,
  },
  {
    paths: (place) => [
      ...inConfigs(place, 'pnpm/config.yaml', 'pnpm/config/config.yaml'),
      ...[join(place.home, '.yarnrc.yml'), ...upwards(place, /^\.yarnrc\.yml$/)],
      ...[join(place.home, '.bunfig.toml'), ...upwards(place, /^bunfig\.toml$/)],
    ],
    what: 'tokens of registries',
    look: (text) =>
      listed(
        each(text, /^\s*['"]?(_auth|npmAuthToken|npmAuthIdent)['"]?:\s*(?=\S)(?!['"]?\$\{)/gm).concat(
          each(text, /\b(token|password)\s*=\s*["'](?!\$|["'])/g),
        ),
        'in',
      ),
    advice: ADD_REGISTRY,
  },
  {
    paths: (place) => [
      ...(place.env.PIP_CONFIG_FILE ? [place.env.PIP_CONFIG_FILE] : []),
      ...inConfigs(place, 'pip/pip.conf', 'pip/pip.ini'),
      ...under('.pip/pip.conf', 'pip/pip.ini')(place),
    ],
    what: 'passwords of package indexes',
    look: (text) => listed(each(text, /:\/\/[^/\s:@]*:[^/\s@]+@([^/\s]+)/g), 'for'),
    advice: `Take the password out; ${PROGRAM} run sets an index of the broker where one is connected. ${HIDE}`,
  },
  {
    paths: (place) => upwards(place, /^\.env(?:rc|\.(?!(?:example|sample|template|dist)$).+)?$/),
    what: 'variables',
    look: variablesIn,
    advice: 'Put the platforms behind the broker, and let the file hold addresses of the broker and no keys',
  },
  {
    paths: ({ env, home }) => [
      env.AWS_SHARED_CREDENTIALS_FILE || join(home, '.aws/credentials'),
      join(home, '.aws/config'),
    ],
    what: 'keys of AWS',
    look: (text) =>
      /^\s*aws_secret_access_key\s*=\s*\S/m.test(text)
        ? listed(each(text, /^\s*\[(?:profile )?([^\]]+)\]/gm), 'of')
        : undefined,
    advice: `${ADD('s3')}, as far as it is S3. ${HIDE}`,
  },
  {
    paths: (place) => [
      ...(place.env.RCLONE_CONFIG ? [place.env.RCLONE_CONFIG] : inConfigs(place, 'rclone/rclone.conf')),
      ...under('.rclone.conf', '.s3cfg', '.boto', '.mc/config.json')(place),
    ],
    what: 'keys of stores of objects',
    look: (text) =>
      STORE_KEY.test(text) ? (listed(each(text, /^\s*\[([^\]\n]+)\]/gm), 'of') ?? 'in the file') : undefined,
    advice: `${ADD('s3')}, if it is used for S3; ${PROGRAM} run gives the command its own key. ${HIDE}`,
  },
  {
    paths: ({ home }) => ['sso', 'cli'].flatMap((kind) => inFolder(join(home, '.aws', kind, 'cache'), /\.json$/)),
    what: 'a session of AWS',
    advice: HIDE,
  },
  {
    paths: ({ env, home }) =>
      env.KUBECONFIG ? env.KUBECONFIG.split(delimiter).filter((path) => path !== '') : [join(home, '.kube/config')],
    what: 'credentials of clusters',
    look: (text) =>
      /\b(?:token|password|client-key-data|client-key|tokenFile)["']?:\s*\S|\bexec["']?:/.test(text)
        ? (listed(each(text, /\bserver["']?:\s*["']?https?:\/\/(?:[^\s"',}]*@)?([^\s"',}/]+)/g), 'for') ??
          'of any cluster')
        : undefined,
    advice: `${ADD('kubernetes')}; ${PROGRAM} run gives the command its own KUBECONFIG`,
  },
  {
    paths: ({ env, home }) => [join(env.DOCKER_CONFIG || join(home, '.docker'), 'config.json')],
    what: 'sign-ins to registries',
    look: (text) =>
      /"(?:auth|identitytoken)"\s*:\s*"[^"]/.test(text)
        ? 'in the file'
        : /"(?:credsStore|credHelpers)"/.test(text)
          ? 'in a credential helper'
          : undefined,
    advice: `"docker logout" before. ${HIDE}`,
  },
  {
    paths: (place) => {
      const { CLOUDSDK_CONFIG: folder, GOOGLE_APPLICATION_CREDENTIALS: named } = place.env;
      const names = ['credentials.db', 'access_tokens.db', 'application_default_credentials.json'];
      return [
        ...(folder
          ? names.map((name) => join(folder, name))
          : inConfigs(place, ...names.map((name) => `gcloud/${name}`))),
        ...(named ? [named] : []),
      ];
    },
    what: 'a sign-in to Google Cloud',
    advice: `Connect a service account (docs/platforms.md), then "gcloud auth revoke". ${HIDE}`,
  },
  {
    paths: (place) => [join(place.home, '.git-credentials'), join(config(place), 'git/credentials')],
    what: 'passwords that git stored',
    look: (text) => listed(each(text, /^https?:\/\/\S*@([^@/\s]+)/gm), 'for'),
    advice: `"${PROGRAM} git-setup" sends git to the broker; take the entries out then`,
  },
  {
    paths: ({ home }) => inFolder(join(home, '.ssh'), /(?<!\.pub)$/),
    what: 'a private key of SSH',
    look: (text) =>
      /-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----/.test(text) ? 'as it is, or with a passphrase' : undefined,
    advice: `"${PROGRAM} git-setup" replaces git over SSH. ${HIDE}`,
  },
  {
    paths: (place) => [
      ...under('.pypirc', '.cargo/credentials.toml', '.terraform.d/credentials.tfrc.json', '.vault-token')(place),
      ...under('.azure/msal_token_cache.json', '.cache/huggingface/token', '.config/stripe/config.toml')(place),
      ...under('.claude/.credentials.json', '.codex/auth.json', '.gem/credentials', '.composer/auth.json')(place),
      ...under('.gemini/oauth_creds.json', '.fly/config.yml', '.pulumi/credentials.json')(place),
      ...inConfigs(place, 'github-copilot/apps.json', 'github-copilot/hosts.json', 'glab-cli/config.yml'),
      ...inConfigs(place, 'doctl/config.yaml', 'pypoetry/auth.toml', 'helm/registry/config.json'),
      ...inConfigs(place, 'terraform.d/credentials.tfrc.json', 'Composer/auth.json'),
      join(place.env.XDG_DATA_HOME || join(place.home, '.local/share'), 'opencode/auth.json'),
    ],
    what: 'a sign-in of a tool',
    advice: HIDE,
  },
  {
    paths: ({ env, cwd, home }) => {
      const folder = env.AGENT_BROKER_DATA || join(cwd, '.agent-broker');
      const profiles = inFolder(join(folder, 'profiles'), /\.json$/);
      return [env.AGENT_BROKER_PROFILE || '', ...profiles, join(home, '.agent-broker/profiles/default.json')].filter(
        Boolean,
      );
    },
    what: 'the private key of an agent',
    advice: `The command could sign as the agent by itself, which stays governed, and outlives it. ${HIDE}`,
  },
  {
    paths: ({ env, cwd }) => {
      const folder = env.AGENT_BROKER_DATA || join(cwd, '.agent-broker');
      return [env.AGENT_BROKER_KEY_FILE || join(folder, 'keys/master.key'), join(folder, 'run/broker.json')];
    },
    what: 'a key of the broker itself',
    advice: 'A program that reads it can act as the broker. Run the broker as a separate user, or on another machine',
  },
];
