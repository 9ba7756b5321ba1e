/** Environment variables and files that tools read, by platform. Each row is data for mcp/sidecar/environment.ts. */

export type Place = {
  /** The address of the connection at the sidecar, without a trailing slash. */
  url: string;
  /** The same address with the placeholder in it, for tools that send no key over plain HTTP. */
  keyedUrl: string;
  /** Returns the placeholder in the form of a platform's key, with the given prefix. */
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
  /** Variables that are set only where they are absent. */
  defaults?: Readonly<Record<string, string>>;
  /** Variables that would take precedence over ours. */
  removed?: readonly string[];
  /** The beginning of all paths of the platform, which some clients expect in the base URL and others add. */
  pathStart?: string;
  /** Files to write into the folder, by name. */
  files?: (at: Place) => Record<string, string>;
};

/** The platform that git uses (docs/git.md). */
export const CODEHOST = 'codehost';

export const TOOLS: readonly Tool[] = [
  {
    platform: 'openai',
    platformName: 'OpenAI',
    variables: ({ url, key }) => ({ OPENAI_BASE_URL: url, OPENAI_API_BASE: url, OPENAI_API_KEY: key('sk-') }),
    // Headers from these variables would name another account, which the broker's entry point of the platform refuses.
    removed: ['OPENAI_ADMIN_KEY', 'OPENAI_ORG_ID', 'OPENAI_ORGANIZATION', 'OPENAI_PROJECT_ID'],
  },
  {
    platform: 'anthropic',
    platformName: 'Anthropic',
    variables: ({ url, key }) => ({ ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: key('sk-ant-api03-') }),
    removed: ['ANTHROPIC_AUTH_TOKEN'],
    // Anthropic's own clients add it to ANTHROPIC_BASE_URL, the AI SDK (@ai-sdk/anthropic) does not.
    pathStart: '/v1',
  },
  {
    platform: CODEHOST,
    platformName: 'GitHub',
    variables: ({ url, key, folder, socket }) => ({
      GITHUB_API_URL: url,
      GITHUB_GRAPHQL_URL: `${url}/graphql`,
      GITHUB_TOKEN: key('ghp_'),
      GH_TOKEN: key('ghp_'),
      OCTOKIT_API_ENDPOINT: `${url}/`,
      OCTOKIT_ACCESS_TOKEN: key('ghp_'),
      // Cargo's own client of git reads none of the settings by which git reaches the broker.
      CARGO_NET_GIT_FETCH_WITH_CLI: 'true',
      ...(socket !== undefined && { GH_CONFIG_DIR: `${folder}/gh` }),
    }),
    removed: ['GH_ENTERPRISE_TOKEN', 'GITHUB_ENTERPRISE_TOKEN', 'GH_HOST', 'OCTOKIT_BEARER_TOKEN', 'OCTOKIT_PROXY'],
    // gh then sends its requests for api.github.com to this socket, as plain HTTP (gh help config).
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
    // Slack's clients append the name of the method without a slash.
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
    // With the placeholder in the address: Yarn, Bun and Deno send no key, or only one that they find in a file of their own.
    variables: ({ keyedUrl, key, folder }) => ({
      npm_config_registry: `${keyedUrl}/`,
      // Deno reads only this variable, and pnpm, since 11, only the next.
      NPM_CONFIG_REGISTRY: `${keyedUrl}/`,
      pnpm_config_registry: `${keyedUrl}/`,
      // Yarn, since 2, uses plain HTTP only for hosts in this whitelist.
      YARN_NPM_REGISTRY_SERVER: keyedUrl,
      YARN_UNSAFE_HTTP_WHITELIST: '127.0.0.1',
      // Answers contain the registry's own address in the addresses of packages.
      npm_config_replace_registry_host: 'always',
      npm_config_globalconfig: `${folder}/npmrc`,
      NPM_TOKEN: key('npm_'),
      NODE_AUTH_TOKEN: key('npm_'),
    }),
    // Shells drop variables whose names contain slashes, so the token of an address is in a file.
    files: ({ keyedUrl, key }) => ({ npmrc: `${keyedUrl.replace(/^http:/, '')}/:_authToken=${key('npm_')}\n` }),
  },
  {
    platform: 's3',
    platformName: 'S3',
    variables: ({ url, key }) => ({
      AWS_ENDPOINT_URL_S3: url,
      // Requests to other services of AWS are then refused here, instead of being sent to AWS with another key.
      AWS_ENDPOINT_URL: url,
      AWS_ACCESS_KEY_ID: key('AKIA'),
      AWS_SECRET_ACCESS_KEY: key(''),
      // Bodies are then sent unchanged, and not in signed chunks.
      AWS_REQUEST_CHECKSUM_CALCULATION: 'when_required',
    }),
    // SDKs require a region before they send anything; the broker signs for its own region.
    defaults: { AWS_REGION: 'us-east-1', AWS_DEFAULT_REGION: 'us-east-1' },
    removed: ['AWS_SESSION_TOKEN', 'AWS_PROFILE', 'AWS_WEB_IDENTITY_TOKEN_FILE', 'AWS_ROLE_ARN'],
  },
  {
    platform: 'kubernetes',
    platformName: 'Kubernetes',
    variables: ({ folder }) => ({ KUBECONFIG: `${folder}/kubeconfig` }),
    // JSON is valid YAML.
    files: ({ keyedUrl }) => ({
      kubeconfig: JSON.stringify({
        apiVersion: 'v1',
        kind: 'Config',
        // @kubernetes/client-node uses plain HTTP, to any address, only with this setting.
        clusters: [{ name: 'broker', cluster: { server: keyedUrl, 'insecure-skip-tls-verify': true } }],
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
  // Not a built-in platform: organisations use this id for their own.
  {
    platform: 'pypi',
    platformName: 'PyPI',
    // pip and uv have no variable for a key, so the placeholder is in the address.
    variables: ({ keyedUrl }) => ({ PIP_INDEX_URL: `${keyedUrl}/`, UV_DEFAULT_INDEX: `${keyedUrl}/` }),
    removed: ['PIP_EXTRA_INDEX_URL', 'UV_INDEX', 'UV_INDEX_URL', 'UV_EXTRA_INDEX_URL'],
  },
  {
    platform: 'huggingface',
    platformName: 'Hugging Face',
    variables: ({ url, key }) => ({ HF_ENDPOINT: url, HF_TOKEN: key('hf_') }),
    removed: ['HUGGING_FACE_HUB_TOKEN', 'HUGGINGFACE_HUB_TOKEN'],
  },
  {
    platform: 'gemini',
    platformName: 'Gemini',
    variables: ({ url, key }) => ({ GOOGLE_GEMINI_BASE_URL: url, GEMINI_API_KEY: key('AIza') }),
    // These would select another key, or another service of Google.
    removed: ['GOOGLE_API_KEY', 'GOOGLE_GENAI_USE_VERTEXAI'],
  },
];
