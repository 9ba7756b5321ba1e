/** Common parts of Google's APIs. */

/**
 * Headers that charge another project or user, or carry a credential of the agent's own: the system parameters of Google's APIs
 * (docs.cloud.google.com/apis/docs/system-parameters), and those of its client libraries for IAM.
 */
export const googleForbiddenHeaders = [
  'x-goog-user-project',
  'x-goog-quota-user',
  'x-goog-api-key',
  'x-goog-iam-authorization-token',
  'x-goog-iam-authority-selector',
];

/**
 * The same parameters in the query (docs.cloud.google.com/apis/docs/system-parameters, with and without `$`); no body has them. `userProject` is Cloud
 * Storage's name of the project that pays. With `callback` the answer is a script, in which no member can be masked. `access_token` and `oauth_token` are
 * refused in queries of every platform.
 */
export const googleRefusedParameters = ['key', 'quotaUser', 'userProject', 'callback']
  .flatMap((name) => [name, `$${name}`])
  .map((name) => ({ name, in: 'query' as const }));

/** Google's form of an error (google.rpc.Status as JSON; cloud.google.com/apis/design/errors). */
export const googleErrorBody = { error: { code: '{status}', message: '{detail}', status: 'PERMISSION_DENIED' } };
