{{ config(
    materialized='incremental',
    incremental_strategy='append',
    file_format='delta',
    tblproperties={'delta.enableIcebergWriterCompatV1': 'true'},
    post_hook="CALL iceberg_writer_compat.system.publish(table => '{{ this }}')"
) }}
SELECT id, concat('n', id) AS name FROM range(2)
{% if is_incremental() %} WHERE id > 0 {% endif %}
