/**
 * - `default`: what only reads runs, the rest asks.
 * - `accept-edits`: tools that edit files of the workspace run too.
 * - `explore`: nothing but reading runs, and no approval changes that; only the tool's own check may say that a call
 *   reads.
 * - `bypass`: everything runs that no rule and no tool holds back.
 * - `dont-ask`: calls that would ask are denied.
 */
export const MODES = ['default', 'accept-edits', 'explore', 'bypass', 'dont-ask'] as const
export type Mode = (typeof MODES)[number]
