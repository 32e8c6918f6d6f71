export default function NewTeam() { return null; }
