// Addresses of policy pages.
/** @typedef {import('../../answers.ts').Policy} Policy */

export const GUARDRAILS = 'guardrails';
export const LIST = '/console/policies';

/** Returns the page of a policy. A policy named `guardrails` is addressed by its id. @param {Pick<Policy, 'id' | 'name'>} policy */
export const pageOfPolicy = ({ id, name }) => `${LIST}/${name === GUARDRAILS ? id : encodeURIComponent(name)}`;
