import { type Command, Option } from 'commander';
import { type ConnectionOptions, connectAsOwner, connectLocally, print, withConnection } from '../connection.ts';
import { CommandFailed } from '../failure.ts';
import { PROGRAM } from '../program-name.ts';

type Options = ConnectionOptions & { json?: boolean };
type Owner = { id: string; email: string; role: string };

export function addOwnerCommands(program: Command): void {
  const owner = program.command('owner').description('owners of this broker’s organisation');
  const local = (command: Command) =>
    command
      .option('--email <address>', 'owner; default: the first admin')
      .option('--data <folder>', 'data folder of the broker (or AGENT_BROKER_DATA)')
      .option('--json', 'print JSON');

  local(owner.command('link').description('create a link that signs an owner in, once, within 15 minutes'))
    .option('--qr', 'also print the link as a QR code, for a phone')
    .action(async (options: Options & { qr?: boolean }) => {
      const { asQrCode, notForPhones } = await import('../link-for-phone.ts');
      const answer = await (await connectLocally(options)).ask('POST', '/owner/link', emailOf(options));
      const link = String(answer.url);
      print(options, answer, () => (options.qr ? `${asQrCode(link)}\n${link}` : link));
      const problem = options.qr ? notForPhones(link) : undefined;
      if (problem) process.stderr.write(`${problem}\n`);
    });

  local(owner.command('token').description('print an owner session (JWT, 12 hours), for scripts')).action(
    async (options: Options) => {
      const answer = await (await connectLocally(options)).ask('POST', '/owner/token', emailOf(options));
      print(options, answer, () => String(answer.token));
    },
  );

  withConnection(owner.command('list').description('list the owners of the organisation'))
    .option('--json', 'print JSON')
    .action(async (options: Options) => {
      const { owners } = (await (await connectAsOwner(options)).ask('GET', '/owner/owners')) as { owners: Owner[] };
      print(options, owners, () => owners.map(({ email, role, id }) => `${email}  ${role}  ${id}`).join('\n'));
    });

  withConnection(owner.command('remove <address>').description('remove an owner, with sessions and passkeys'))
    .option('--json', 'print JSON')
    .action(async (address: string, options: Options) => {
      const broker = await connectAsOwner(options);
      const { owners } = (await broker.ask('GET', '/owner/owners')) as { owners: Owner[] };
      const found = owners.find(({ email }) => email === address.toLowerCase());
      if (!found) throw new CommandFailed(`No owner has the address ${address}. See: ${PROGRAM} owner list`);
      const answer = await broker.ask('DELETE', `/owner/owners/${found.id}`);
      print(options, answer, () => `${found.email} is no owner any more.`);
    });

  owner
    .command('add <email>')
    .description('add an owner, or change the role of one')
    .addOption(new Option('--role <role>').choices(['admin', 'approver', 'viewer']).makeOptionMandatory())
    .option(
      '--forget-identity',
      'let whoever next signs in with this verified address at the identity provider be this owner: sessions and passkeys of the person until now end',
    )
    .option('--data <folder>', 'data folder of the broker (or AGENT_BROKER_DATA)')
    .option('--json', 'print JSON')
    .action(async (email: string, options: Options & { role: string; forgetIdentity?: boolean }) => {
      const connection = await connectLocally(options);
      const answer = await connection.ask('POST', '/owner/owners', {
        email,
        role: options.role,
        ...(options.forgetIdentity && { forget_identity: true }),
      });
      const how = await connection.ask('GET', '/owner/sign-in-options');
      const where =
        how.method === 'oidc'
          ? `at ${how.provider}, from the console`
          : `with: ${PROGRAM} owner link --email ${answer.email}`;
      print(options, answer, () => `${answer.email} is ${answer.role}. Sign in ${where}`);
    });
}

const emailOf = ({ email }: Options) => ({ ...(email && { email }) });
