/** Recognises keys of platforms by their prefix, and by the variables from which their tools read them. */

type KeyForm = {
  platform: string;
  /** The name for `agent-broker add`; undefined: not a built-in platform. */
  add?: string;
  form?: RegExp;
  names?: readonly string[];
};

/** In order of precedence: the first matching form counts. */
const KEY_FORMS: readonly KeyForm[] = [
  {
    platform: 'GitHub',
    add: 'github',
    form: /\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,})/,
    names: ['GITHUB_TOKEN', 'GH_TOKEN', 'GH_ENTERPRISE_TOKEN', 'GITHUB_ENTERPRISE_TOKEN'],
  },
  {
    platform: 'Anthropic',
    add: 'anthropic',
    form: /\bsk-ant-[\w-]{16,}/,
    names: ['ANTHROPIC_API_KEY', 'ANTHROPIC_AUTH_TOKEN'],
  },
  {
    platform: 'OpenAI',
    add: 'openai',
    form: /\bsk-(?:proj-|svcacct-|admin-)?[\w-]{20,}/,
    names: ['OPENAI_API_KEY', 'OPENAI_ADMIN_KEY'],
  },
  {
    platform: 'Stripe',
    add: 'stripe',
    form: /\b(?:sk|rk)_(?:live|test)_\w{10,}|\bwhsec_\w{16,}/,
    names: ['STRIPE_API_KEY', 'STRIPE_SECRET_KEY'],
  },
  {
    platform: 'Slack',
    add: 'slack',
    form: /\bxox[abeoprs]-[\w-]{10,}|\bxapp-[\w-]{10,}/,
    names: ['SLACK_TOKEN', 'SLACK_BOT_TOKEN', 'SLACK_USER_TOKEN', 'SLACK_APP_TOKEN'],
  },
  { platform: 'npm', add: 'npm', form: /\bnpm_[A-Za-z0-9]{20,}/, names: ['NPM_TOKEN', 'NODE_AUTH_TOKEN'] },
  {
    platform: 'AWS',
    add: 's3',
    form: /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/,
    names: ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'AWS_SESSION_TOKEN'],
  },
  {
    platform: 'Notion',
    add: 'notion',
    form: /\b(?:ntn|secret)_[A-Za-z0-9]{30,}/,
    names: ['NOTION_TOKEN', 'NOTION_API_KEY'],
  },
  { platform: 'Linear', add: 'linear', form: /\blin_(?:api|oauth)_\w{20,}/, names: ['LINEAR_API_KEY'] },
  { platform: 'GitLab', form: /\bgl(?:pat|dt|rt|cbt|ptt|ft|soat)-[\w-]{16,}/, names: ['GITLAB_TOKEN', 'CI_JOB_TOKEN'] },
  { platform: 'Google', form: /\bAIza[\w-]{30,}|\bya29\.[\w-]{20,}/, names: ['GOOGLE_API_KEY', 'GEMINI_API_KEY'] },
  { platform: 'Hugging Face', form: /\bhf_[A-Za-z0-9]{20,}/, names: ['HF_TOKEN', 'HUGGING_FACE_HUB_TOKEN'] },
  { platform: 'PyPI', form: /\bpypi-[\w-]{30,}/, names: ['TWINE_PASSWORD', 'UV_PUBLISH_TOKEN'] },
  { platform: 'Docker Hub', form: /\bdckr_(?:pat|oat)_[\w-]{16,}/ },
  { platform: 'DigitalOcean', form: /\bdo[opr]_v1_[a-f0-9]{32,}/, names: ['DIGITALOCEAN_TOKEN'] },
  { platform: 'SendGrid', form: /\bSG\.[\w-]{16,}\.[\w-]{16,}/, names: ['SENDGRID_API_KEY'] },
  { platform: 'HashiCorp Vault', form: /\bhv[sbr]\.[\w-]{20,}/, names: ['VAULT_TOKEN'] },
  { platform: 'Azure', names: ['AZURE_CLIENT_SECRET', 'AZURE_STORAGE_KEY', 'AZURE_OPENAI_API_KEY'] },
  { platform: 'a key pair', form: /-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----/ },
  { platform: 'a URL with a password', form: /\b[a-z][a-z0-9+.-]{0,30}:\/\/[^/\s:@]*:[^/\s@]+@/i },
  { platform: 'a JWT', form: /\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}/ },
];

/** Names that variables for credentials typically have. */
export const LIKE_A_CREDENTIAL =
  /(?:TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|ACCESS_KEY|PRIVATE_KEY|CREDENTIALS?)(?:_|$)/i;
/** Shorter values of variables with such a name are taken for settings. */
const MIN = 8;

/** The kind of a credential, by the form of its value, otherwise by its name. `add`: the name of the platform for `agent-broker add`. */
export type Recognised = { platform: string; add: string | undefined };

/** Recognises a credential; undefined when name and value do not look like one. */
export function recognise(name: string, value: string): Recognised | undefined {
  if (value === '') return undefined;
  const found =
    KEY_FORMS.find(({ form }) => form?.test(value)) ??
    KEY_FORMS.find(({ names }) => names?.includes(name.toUpperCase()));
  if (found) return { platform: found.platform, add: found.add };
  if (value.length < MIN || !LIKE_A_CREDENTIAL.test(name)) return undefined;
  const isPath = /^[~.]?\//.test(value);
  return { platform: isPath ? 'a path to a credential, by its name' : 'a credential, by its name', add: undefined };
}
