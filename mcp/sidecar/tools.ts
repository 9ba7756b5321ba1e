/** What tools read, by the platform that they are for. Each row is data for mcp/sidecar/environment.ts. */

export type Place = {
  /** The connection at the sidecar, without a trailing slash. */
  url: string;
  /** The same with the placeholder in it, for what sends no key over plain HTTP. */
  keyedUrl: string;
  /** The placeholder in the form of a platform's key, which begins with these letters. */
  key: (beginning: string) => string;
  /** A folder of the run that only its user can read, and the Unix socket in it. */
  folder: string;
  socket: string | undefined;
};

export type Tool = {
  /** The built-in platform: its usual id, and the name in its manifest. */
  platform: string;
  platformName: string;
  variables: (at: Place) => Record<string, string>;
  /** Variables that are set where they are not. */
  defaults?: Readonly<Record<string, string>>;
  /** Variables that would be taken before ours. */
  removed?: readonly string[];
  /** By name, in the folder. */
  files?: (at: Place) => Record<string, string>;
};

/** The platform of git (docs/git.md). */
export const CODEHOST = 'codehost';

export const TOOLS: readonly Tool[] = [
  {
    platform: 'openai',
    platformName: 'OpenAI',
    variables: ({ url, key }) => ({ OPENAI_BASE_URL: url, OPENAI_API_BASE: url, OPENAI_API_KEY: key('sk-') }),
    // Their headers would name an account of somebody's own, which the platform's entry refuses.
    removed: ['OPENAI_ADMIN_KEY', 'OPENAI_ORG_ID', 'OPENAI_ORGANIZATION', 'OPENAI_PROJECT_ID'],
  },
  {
    platform: 'anthropic',
    platformName: 'Anthropic',
    variables: ({ url, key }) => ({ ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: key('sk-ant-api03-') }),
    removed: ['ANTHROPIC_AUTH_TOKEN'],
  },
  {
    platform: CODEHOST,
    platformName: 'GitHub',
    variables: ({ url, key, folder, socket }) => ({
      GITHUB_API_URL: url,
      GITHUB_GRAPHQL_URL: `${url}/graphql`,
      GITHUB_TOKEN: key('ghp_'),
      GH_TOKEN: key('ghp_'),
      ...(socket !== undefined && { GH_CONFIG_DIR: `${folder}/gh` }),
    }),
    removed: ['GH_ENTERPRISE_TOKEN', 'GITHUB_ENTERPRISE_TOKEN', 'GH_HOST'],
    // gh then sends what it asks api.github.com to this socket, as plain HTTP (gh help config).
    files: ({ socket }): Record<string, string> =>
      socket === undefined ? {} : { 'gh/config.yml': `http_unix_socket: ${JSON.stringify(socket)}\n` },
  },
  {
    platform: 'stripe',
    platformName: 'Stripe',
    variables: ({ url, key }) => ({
      STRIPE_API_BASE: url,
      STRIPE_API_KEY: key('sk_test_'),
      STRIPE_SECRET_KEY: key('sk_test_'),
    }),
  },
  {
    platform: 'slack',
    platformName: 'Slack',
    // Slack's clients put the name of the method right behind it.
    variables: ({ url, key }) => ({
      SLACK_API_URL: `${url}/`,
      SLACK_BOT_TOKEN: key('xoxb-'),
      SLACK_TOKEN: key('xoxb-'),
    }),
    removed: ['SLACK_USER_TOKEN', 'SLACK_APP_TOKEN'],
  },
  {
    platform: 'npm',
    platformName: 'npm registry',
    // With the placeholder in it: Yarn, Bun and Deno send no key, or none that they do not find in a file of their own.
    variables: ({ keyedUrl, key, folder }) => ({
      npm_config_registry: `${keyedUrl}/`,
      // Deno reads this one alone, and pnpm, since 11, its own.
      NPM_CONFIG_REGISTRY: `${keyedUrl}/`,
      pnpm_config_registry: `${keyedUrl}/`,
      // Yarn, since 2, which asks no registry over plain HTTP unless it is told so.
      YARN_NPM_REGISTRY_SERVER: keyedUrl,
      YARN_UNSAFE_HTTP_WHITELIST: '127.0.0.1',
      // Answers name the registry itself in the addresses of packages.
      npm_config_replace_registry_host: 'always',
      npm_config_globalconfig: `${folder}/npmrc`,
      NPM_TOKEN: key('npm_'),
      NODE_AUTH_TOKEN: key('npm_'),
    }),
    // Shells drop variables whose names hold slashes, so the token of an address stands in a file.
    files: ({ keyedUrl, key }) => ({ npmrc: `${keyedUrl.replace(/^http:/, '')}/:_authToken=${key('npm_')}\n` }),
  },
  {
    platform: 's3',
    platformName: 'S3',
    variables: ({ url, key }) => ({
      AWS_ENDPOINT_URL_S3: url,
      // Other services of AWS then are refused here, and not asked elsewhere with another key.
      AWS_ENDPOINT_URL: url,
      AWS_ACCESS_KEY_ID: key('AKIA'),
      AWS_SECRET_ACCESS_KEY: key(''),
      // Bodies then go as they are, and not in signed pieces.
      AWS_REQUEST_CHECKSUM_CALCULATION: 'when_required',
    }),
    // SDKs begin nothing without one; what is signed is signed by the broker, for its own.
    defaults: { AWS_REGION: 'us-east-1', AWS_DEFAULT_REGION: 'us-east-1' },
    removed: ['AWS_SESSION_TOKEN', 'AWS_PROFILE', 'AWS_WEB_IDENTITY_TOKEN_FILE', 'AWS_ROLE_ARN'],
  },
  {
    platform: 'kubernetes',
    platformName: 'Kubernetes',
    variables: ({ folder }) => ({ KUBECONFIG: `${folder}/kubeconfig` }),
    // JSON is YAML, too.
    files: ({ keyedUrl }) => ({
      kubeconfig: JSON.stringify({
        apiVersion: 'v1',
        kind: 'Config',
        clusters: [{ name: 'broker', cluster: { server: keyedUrl } }],
        users: [{ name: 'agent', user: {} }],
        contexts: [{ name: 'broker', context: { cluster: 'broker', user: 'agent' } }],
        'current-context': 'broker',
      }),
    }),
  },
  {
    platform: 'notion',
    platformName: 'Notion',
    variables: ({ url, key }) => ({
      NOTION_BASE_URL: url,
      NOTION_TOKEN: key('ntn_'),
      NOTION_API_KEY: key('ntn_'),
    }),
  },
  {
    platform: 'linear',
    platformName: 'Linear',
    variables: ({ url, key }) => ({ LINEAR_API_URL: url, LINEAR_API_KEY: key('lin_api_') }),
  },
  // No built-in platforms: an organisation names its own so.
  {
    platform: 'pypi',
    platformName: 'PyPI',
    // pip and uv have no variable for a key, so the placeholder stands in the address.
    variables: ({ keyedUrl }) => ({ PIP_INDEX_URL: `${keyedUrl}/`, UV_DEFAULT_INDEX: `${keyedUrl}/` }),
    removed: ['PIP_EXTRA_INDEX_URL', 'UV_INDEX', 'UV_INDEX_URL', 'UV_EXTRA_INDEX_URL'],
  },
  {
    platform: 'huggingface',
    platformName: 'Hugging Face',
    variables: ({ url, key }) => ({ HF_ENDPOINT: url, HF_TOKEN: key('hf_') }),
    removed: ['HUGGING_FACE_HUB_TOKEN', 'HUGGINGFACE_HUB_TOKEN'],
  },
];
