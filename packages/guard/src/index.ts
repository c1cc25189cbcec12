// Analysis of shell commands and paths: what a tool that runs commands or opens files checks its calls with.
export {
  analyseCommand,
  checkCommand,
  commandMatches,
  commandMentions,
  suggestRules,
} from './check/check-command.ts'
export { type CommandGuard, commandGuard } from './check/command-guard.ts'
export { checkPath, type PathCheck, type PathOptions, type PathReason } from './paths/check-path.ts'
export { commandPatternProblem } from './rules/reading.ts'
export type {
  AnalyseOptions,
  Analysis,
  CommandCheck,
  CommandOptions,
  Construct,
  Reason,
  SimpleCommand,
  Unclear,
} from './words/types.ts'
