// Says which Node is missing, in words that an old Node can read. Loaded before everything else (`node -r`).
const complaint = (version) => {
  const [major, minor] = version.split('.').map(Number)
  if (major > 22 || (major === 22 && minor >= 18)) return undefined
  return (
    `Oxbow needs Node 22.18 or newer; this is ${version}. On Linux x64 "npm ci" brings Node 24 along, unless optional ` +
    'dependencies are left out; elsewhere install it from https://nodejs.org.'
  )
}

module.exports = { complaint }

const text = complaint(process.versions.node)
if (text !== undefined) {
  console.error(text)
  process.exit(2)
}
