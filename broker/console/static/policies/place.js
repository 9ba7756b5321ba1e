// Where the page of a policy is.
/** @typedef {import('../../answers.ts').Policy} Policy */

export const GUARDRAILS = 'guardrails';
export const LIST = '/console/policies';

/** A policy may have the name that the guardrails have here: then its id leads to it. @param {Pick<Policy, 'id' | 'name'>} policy */
export const pageOfPolicy = ({ id, name }) => `${LIST}/${name === GUARDRAILS ? id : encodeURIComponent(name)}`;
