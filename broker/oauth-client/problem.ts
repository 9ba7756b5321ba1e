/** Expected failures of creating or refreshing a connection, as values. */

export type OAuthProblem = {
  problem: /** The platform's manifest, or what it names, is incomplete. */
    | 'unsuitable'
    /** The callback belongs to no pending flow. */
    | 'stale'
    /** The person, or the server, denied the authorization. */
    | 'declined'
    /** The server rejected the refresh token (RFC 6749 section 5.2). */
    | 'invalid_grant'
    /** The server rejected the broker's client or its request: an operator has to correct that (section 5.2). */
    | 'client_rejected'
    /** The server's response cannot be used. */
    | 'failed'
    /** The server did not answer. */
    | 'unreachable';
  /** A sentence for people. Contains nothing that the server or a browser sent, except an error code. */
  detail: string;
  /** For `client_rejected`, and for `failed` where the server sent one: its error code. */
  error?: string;
};

/** Whether a result is a problem. */
export const isProblem = (result: object): result is OAuthProblem => 'problem' in result;
