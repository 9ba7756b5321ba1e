import { type Command, Option } from 'commander';
import {
  type BrokerConnection,
  type ConnectionOptions,
  connectAsOwner,
  connectLocally,
  print,
  withConnection,
} from '../connection.ts';
import { CommandFailed, WrongUsage } from '../failure.ts';
import { ownerOf } from '../named-owner.ts';
import { openOwnerApi } from '../owner-api.ts';
import { commandLine } from '../server-entry.ts';
import { line, styled } from '../terminal/line.ts';
import { printLines, terminalWidth } from '../terminal/output.ts';

type Options = ConnectionOptions & { json?: boolean };
type Owner = { id: string; email: string; role: string };

export function addOwnerCommands(program: Command): void {
  const owner = program.command('owner').description('owners of this broker’s organisation');
  const local = (command: Command) =>
    command
      .option('--email <address>', 'owner; default: the first admin')
      .option('--organisation <id>', 'organisation of the owner, by id or name, on a broker with several')
      .option('--data <folder>', 'data folder of the broker (or AGENT_BROKER_DATA)')
      .option('--json', 'print JSON');

  local(owner.command('link').description('create a link that signs an owner in, once, within 15 minutes'))
    .option('--qr', 'also print the link as a QR code, for a phone')
    .action(async (options: Options & { qr?: boolean }) => {
      const { asQrCode, notForPhones, tooWide } = await import('../link-for-phone.ts');
      const answer = await (await connectLocally(options)).ask('POST', '/owner/link', ownerOf(options));
      const link = String(answer.url);
      const code = options.qr ? asQrCode(link) : undefined;
      const wide = code && tooWide(code, terminalWidth());
      print(options, answer, () => (code && !wide ? `${code}\n${link}` : link));
      const problem = options.qr ? (wide ?? notForPhones(link)) : undefined;
      if (problem) process.stderr.write(`${problem}\n`);
    });

  local(owner.command('token').description('print an owner session (JWT, 12 hours), for scripts')).action(
    async (options: Options) => {
      const answer = await (await connectLocally(options)).ask('POST', '/owner/token', ownerOf(options));
      print(options, answer, () => String(answer.token));
    },
  );

  withConnection(owner.command('list').description('list the owners of the organisation'))
    .option('--json', 'print JSON')
    .action(async (options: Options) => {
      const owners = await ownersOf(await connectAsOwner(options));
      print(options, owners, () => owners.map(({ email, role, id }) => `${email}  ${role}  ${id}`).join('\n'));
    });

  withConnection(owner.command('remove <address>').description('remove an owner, with sessions and passkeys'))
    .option('--yes', 'do not ask')
    .option('--json', 'print JSON')
    .action(async (address: string, options: Options & { yes?: true }) => {
      const { canAsk, confirm } = await import('../terminal/prompt.ts');
      if (!options.yes && (options.json || !canAsk()))
        throw new WrongUsage('To remove an owner without a terminal to ask at, or with --json, add --yes.');
      const broker = await connectAsOwner(options);
      const found = ownerAt(broker, await ownersOf(broker), address);
      if (!options.yes) {
        printLines([line`${styled('bold', found.email)} is ${found.role}.`]);
        if (!(await confirm('Its sessions and passkeys end. Go on to remove this owner?')))
          throw new CommandFailed('Nothing was changed.');
      }
      const answer = await broker.ask('DELETE', `/owner/owners/${found.id}`);
      print(options, answer, () => `${found.email} is no longer an owner.`);
    });

  withConnection(
    owner
      .command('hand-over <from> <to> [agents...]')
      .description(
        'move agents from one owner to another, by e-mail address: all that are not revoked, or those given by name or id',
      ),
  )
    .option('--json', 'print JSON')
    .action(async (from: string, to: string, agents: string[], options: Options) => {
      const { agentIdOf } = await import('../find-agent.ts');
      const api = await openOwnerApi(options);
      const owners = await ownersOf(api.broker);
      const [giver, taker] = [ownerAt(api.broker, owners, from), ownerAt(api.broker, owners, to)];
      const ids = [];
      for (const agent of agents) ids.push(await agentIdOf(api, agent));
      const body = { from: giver.id, to: taker.id, ...(ids.length > 0 && { agents: ids }) };
      const answer = await api.ask('POST', '/owner/hand-over', body);
      const { handed_over: count, in_governance_file: inFile } = answer;
      const more = inFile > 0 ? ` A governance file decides about ${inFile} of them at its next apply.` : '';
      print(options, answer, () => `${giver.email} → ${taker.email}: handed over ${counted(count)}.${more}`);
    });

  owner
    .command('add <email>')
    .description('add an owner, or change the role of one')
    .addOption(new Option('--role <role>').choices(['admin', 'approver', 'viewer']).makeOptionMandatory())
    .option(
      '--forget-identity',
      'assign this owner to the next person who signs in with this verified address at the identity provider; existing sessions and passkeys end',
    )
    .option('--organisation <id>', 'organisation of the owner, by id or name, on a broker with several')
    .option('--data <folder>', 'data folder of the broker (or AGENT_BROKER_DATA)')
    .option('--json', 'print JSON')
    .action(async (email: string, options: Options & { role: string; forgetIdentity?: boolean }) => {
      const connection = await connectLocally(options);
      const answer = await connection.ask('POST', '/owner/owners', {
        email,
        role: options.role,
        ...(options.organisation && { organisation: options.organisation }),
        ...(options.forgetIdentity && { forget_identity: true }),
      });
      const where = await whereToSignIn(connection, String(answer.email));
      print(options, answer, () => `${answer.email} is ${answer.role}. Sign in ${where}`);
    });
}

/**
 * Says where an owner signs in: at the identity provider, or by a link that a command prints, for the same broker. `organisation`: of the owner, where the
 * options of the connection do not name it.
 */
export async function whereToSignIn(broker: BrokerConnection, email: string, organisation?: string): Promise<string> {
  const how = await broker.ask('GET', '/owner/sign-in-options');
  if (how.method === 'oidc') return `at ${how.provider}, from the console`;
  const named = ['--email', email, ...(organisation ? ['--organisation', organisation] : [])];
  return `with: ${broker.command(`owner link ${commandLine(named)}`)}`;
}

const counted = (agents: number): string => `${agents} agent${agents === 1 ? '' : 's'}`;

const ownersOf = async (broker: BrokerConnection): Promise<Owner[]> =>
  ((await broker.ask('GET', '/owner/owners')) as { owners: Owner[] }).owners;

/** Returns the owner with this address. Throws CommandFailed when there is none. */
function ownerAt(broker: BrokerConnection, owners: readonly Owner[], address: string): Owner {
  const found = owners.find(({ email }) => email === address.toLowerCase());
  if (!found) throw new CommandFailed(`No owner has the address ${address}. See: ${broker.command('owner list')}`);
  return found;
}
