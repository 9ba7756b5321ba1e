/**
 * Explains why a platform issues no token of an installation, in sentences that say who can fix it. They contain no text of the platform.
 */
import type { Answer } from '../egress/buffered-exchange.ts';
import type { AppLimits, Installation } from './app-installation.ts';
import type { TokenRefusal } from './exchanged.ts';

type Answered = Extract<Answer, { kind: 'answer' }>;

/** Undefined when the answer is not a refusal: the platform is unavailable or busy. */
export function refusalOf(
  { status, headers, body }: Answered,
  { platformId, appId, installationId }: Installation,
  { repository, permissions = {} }: AppLimits,
): TokenRefusal | undefined {
  const refuse = (of: TokenRefusal['of'], detail: string): TokenRefusal => ({ kind: 'refused', of, detail });
  // A rate limit is a 403 too (GitHub, "Rate limits for the REST API").
  const isLimit = headers['retry-after'] !== undefined || headers['x-ratelimit-remaining'] === '0';
  switch (status) {
    case 401:
      return refuse(
        'connection',
        `${platformId} refused the signature of the App ${appId}: the private key is another App's or was deleted there, or the clock of the broker is wrong. An owner applies the governance file with a key of this App.`,
      );
    case 403:
      if (isLimit) return undefined;
      return refuse(
        'connection',
        /suspended/i.test(body.toString('latin1'))
          ? `The installation ${installationId} of the App ${appId} is suspended at ${platformId}. An administrator of the account where it is installed has to unsuspend it, in the account's settings.`
          : `${platformId} forbids the App ${appId} to issue tokens of its installation ${installationId}. An administrator of the account where it is installed has to check it, in the account's settings.`,
      );
    case 404:
      return refuse(
        'connection',
        `${platformId} knows no installation ${installationId} of the App ${appId}: it was uninstalled, or the number is another App's. An owner installs the App and gives the connection the number of the installation.`,
      );
    case 422: {
      const wanted = Object.entries(permissions).map(([name, access]) => `${name}: ${access}`);
      const where = repository ? `${repository.owner}/${repository.name}` : 'all its repositories';
      return refuse(
        'call',
        `The installation ${installationId} of the App ${appId} has not what this call needs: ${wanted.join(', ') || 'its permissions'} on ${where}. An owner gives the App the permissions in its settings, and an administrator of the account where it is installed accepts them and adds the repository.`,
      );
    }
    default:
      return status < 400 || (status < 500 && status !== 408 && status !== 429)
        ? refuse(
            'connection',
            `${platformId} answered ${status} when it was asked for a token of the App ${appId}. Is base_url the address of its REST API? An owner corrects it in the governance file.`,
          )
        : undefined;
  }
}
