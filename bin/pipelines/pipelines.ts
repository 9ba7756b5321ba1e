/** Manages the pipelines that the broker trusts: lists, adds and removes them. */
import type { Pipeline } from '../../broker/console/answers.ts';
import { type ConnectionOptions, print } from '../connection.ts';
import { CommandFailed, WrongUsage } from '../failure.ts';
import { openOwnerApi } from '../owner-api.ts';

type Options = ConnectionOptions & { json?: boolean };
export type AddOptions = Options & {
  role: 'viewer' | 'admin';
  github?: string;
  gitlab?: string;
  branch?: string;
  environment?: string;
  pullRequests?: boolean;
  issuer?: string;
  subject?: string;
  jwksUri?: string;
};

export async function listPipelines(options: Options): Promise<void> {
  const { pipelines } = await (await openOwnerApi(options)).ask('GET', '/owner/pipelines');
  print(options, pipelines, () => pipelines.map(described).join('\n') || 'There are no pipelines.');
}

const described = ({ name, role, issuer, subject, last_used_at }: Pipeline): string =>
  `${name}  ${role}  ${subject}  ${issuer}  ${last_used_at === null ? 'never used' : `used ${last_used_at}`}`;

export async function addPipeline(name: string, options: AddOptions): Promise<void> {
  const meant = meantBy(options);
  const made = await (await openOwnerApi(options)).ask('POST', '/owner/pipelines', {
    name,
    role: options.role,
    ...meant,
    ...(options.jwksUri !== undefined && { jwks_uri: options.jwksUri }),
  });
  print(options, made, () =>
    [
      `The pipeline ${made.name} may ${made.role === 'admin' ? 'plan and apply' : 'plan'}: ${made.subject} of ${made.issuer}.`,
      '',
      ...inThePipeline(made, options),
    ].join('\n'),
  );
}

export async function removePipeline(name: string, options: Options): Promise<void> {
  const api = await openOwnerApi(options);
  const { pipelines } = await api.ask('GET', '/owner/pipelines');
  const found = pipelines.find((one) => one.name === name);
  if (!found) throw new CommandFailed(`There is no pipeline ${name}. See: ${api.command('pipeline list')}`);
  const answer = await api.ask('DELETE', `/owner/pipelines/${found.id}`);
  print(options, answer, () => `The pipeline ${name} is removed: its next request is refused.`);
}

/** Builds issuer and subject in the form of the platform. Throws CommandFailed. */
function meantBy(options: AddOptions): { issuer: string; subject: string } {
  const { github, gitlab, issuer, subject } = options;
  if ([github, gitlab, issuer].filter((one) => one !== undefined).length !== 1)
    throw new CommandFailed('Say whose tokens these are with one of --github, --gitlab and --issuer.');
  if (github !== undefined)
    return { issuer: 'https://token.actions.githubusercontent.com', subject: subject ?? onGitHub(github, options) };
  if (gitlab !== undefined) return { issuer: 'https://gitlab.com', subject: subject ?? onGitLab(gitlab, options) };
  if (subject === undefined) throw new CommandFailed('With --issuer, say the subject of the tokens with --subject.');
  return { issuer: issuer ?? '', subject };
}

/** The subject's format: https://docs.github.com/en/actions/reference/security/oidc, "Example subject claims" */
function onGitHub(repository: string, { branch, environment, pullRequests }: AddOptions): string {
  if (!/^[^/:\s]+\/[^/:\s]+$/.test(repository))
    throw new WrongUsage('--github takes OWNER/REPOSITORY, such as acme/governance.');
  const ways = [
    ...(branch === undefined ? [] : [`ref:refs/heads/${branch}`]),
    ...(environment === undefined ? [] : [`environment:${environment}`]),
    ...(pullRequests ? ['pull_request'] : []),
  ];
  if (ways.length !== 1)
    throw new CommandFailed('With --github, say which jobs with one of --branch, --environment and --pull-requests.');
  return `repo:${repository}:${ways[0]}`;
}

/** The subject's format: https://docs.gitlab.com/ci/secrets/id_token_authentication/, `sub` */
function onGitLab(project: string, { branch }: AddOptions): string {
  if (!/^[^/:\s]+(?:\/[^/:\s]+)+$/.test(project))
    throw new WrongUsage('--gitlab takes GROUP/PROJECT, such as acme/governance.');
  if (branch === undefined) throw new CommandFailed('With --gitlab, say which jobs with --branch.');
  return `project_path:${project}:ref_type:branch:ref:${branch}`;
}

function inThePipeline({ audience, role }: Pipeline, { github, gitlab }: AddOptions): string[] {
  const command = role === 'admin' ? 'apply' : 'plan --without-secrets';
  if (github !== undefined)
    return [
      'In the workflow:',
      '  permissions:',
      '    id-token: write',
      '    contents: read',
      '  steps:',
      '    - uses: actions/checkout@v6',
      `    - run: npx agent-broker ${command} governance.yaml --pipeline ${audience}`,
    ];
  if (gitlab !== undefined)
    return [
      'In the job of .gitlab-ci.yml:',
      '  id_tokens:',
      '    AGENT_BROKER_OWNER_TOKEN:',
      `      aud: ${audience}`,
      '  script:',
      `    - npx agent-broker ${command} governance.yaml --pipeline ${audience}`,
    ];
  return [
    `With a token for the audience ${audience} in AGENT_BROKER_OWNER_TOKEN:`,
    `  npx agent-broker ${command} governance.yaml --pipeline ${audience}`,
  ];
}
