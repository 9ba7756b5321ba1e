/** What can keep a connection from being made or refreshed. Values, because each of them is promised an answer. */

export type OAuthProblem = {
  problem: /** The platform's manifest, or what it names, does not say enough. */
    | 'unsuitable'
    /** This is not, or no longer, the answer to what was begun. */
    | 'stale'
    /** The person, or the server, did not consent. */
    | 'declined'
    /** The server does not take the refresh token any more (RFC 6749 section 5.2). */
    | 'invalid_grant'
    /** The server does not take the broker's client, or what it asks for: an operator has to correct that (section 5.2). */
    | 'client_rejected'
    /** The server answered with something that cannot be used. */
    | 'failed'
    /** The server gave no answer. */
    | 'unreachable';
  /** A sentence for people. Holds nothing that the server or a browser sent but an error's name. */
  detail: string;
  /** Of `client_rejected`: the server's name for the error. */
  error?: string;
};

/** Whether a result is one. */
export const isProblem = (result: object): result is OAuthProblem => 'problem' in result;
