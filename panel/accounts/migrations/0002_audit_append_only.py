"""The audit trail only grows: the database itself refuses to change or remove an entry, whoever asks."""

from django.db import migrations

FORWARD = """
CREATE FUNCTION accounts_audit_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'The audit trail is append-only: % refused', TG_OP USING ERRCODE = 'insufficient_privilege';
END
$$;
CREATE TRIGGER audit_no_change BEFORE UPDATE OR DELETE ON accounts_auditentry
    FOR EACH ROW EXECUTE FUNCTION accounts_audit_refuse();
CREATE TRIGGER audit_no_truncate BEFORE TRUNCATE ON accounts_auditentry
    FOR EACH STATEMENT EXECUTE FUNCTION accounts_audit_refuse();
"""
BACKWARD = """
DROP TRIGGER audit_no_truncate ON accounts_auditentry;
DROP TRIGGER audit_no_change ON accounts_auditentry;
DROP FUNCTION accounts_audit_refuse();
"""


class Migration(migrations.Migration):
    dependencies = [("accounts", "0001_initial")]
    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
